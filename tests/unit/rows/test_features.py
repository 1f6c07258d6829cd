"""What is settled once all rows were seen: the width, libsvm's first index, the codes of categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from smxgb.errors import UserError
from smxgb.rows.batch import SPARSE, Dense, Sparse
from smxgb.rows.features import MOST, count_features, describe_indexing, describe_unused, fitted, settle
from smxgb.rows.schema import Declared, Layout, Schema
from smxgb.rows.store import Stored
from smxgb.rows.summary import Extent, Summary, summarise

if TYPE_CHECKING:
    from smxgb.job.content_types import ContentType
    from smxgb.rows.features import Indexing

SPARSE_ROWS = Declared()


def seen(lowest: int | None, highest: int | None, width: int = 0) -> Summary:
    return Summary(rows=5, extent=Extent(lowest, highest, width), present=0 if highest is None else 5)


def settled(
    channels: dict[str, Summary],
    indexing: Indexing = "auto",
    content_type: ContentType = "libsvm",
    declared: Declared = SPARSE_ROWS,
) -> Schema:
    return settle(declared, channels, dict.fromkeys(channels, content_type), indexing)


@pytest.mark.parametrize(
    ("train", "validation", "first", "width"),
    [
        ((0, 3), (1, 3), 0, 4),
        ((1, 3), (0, 2), 0, 4),
        ((1, 3), (1, 3), 1, 3),
        ((1, 3), (2, 7), 1, 7),
        ((5, 9), (6, 8), 1, 9),
        ((None, None), (1, 2), 1, 2),
    ],
)
def test_the_first_index_and_the_width_are_one_for_all_channels(
    train: tuple[int | None, int | None], validation: tuple[int, int], first: int, width: int
) -> None:
    schema = settled({"train": seen(*train), "validation": seen(*validation)})
    assert (schema.first_index, len(schema.names)) == (first, width)
    assert schema.names[-1] == f"f{width - 1}"


def test_a_setting_decides_over_the_files() -> None:
    assert len(settled({"train": seen(1, 3)}, "0").names) == 4
    assert len(settled({"train": seen(1, 3)}, "1").names) == 3
    with pytest.raises(UserError, match="channel train has the index 0, but libsvm_indexing=1 says"):
        settled({"train": seen(0, 3)}, "1")


@pytest.mark.parametrize(
    ("first", "indexing", "reason"),
    [
        (0, "auto", "the lowest index of all files"),
        (1, "auto", "no file has the index 0"),
        (1, "1", "libsvm_indexing"),
    ],
)
def test_the_log_says_where_features_begin_and_why(first: int, indexing: Indexing, reason: str) -> None:
    line = describe_indexing(Schema(("f0", "f1"), invented=True, first_index=first), indexing)
    assert line == f"libsvm: the first feature has the index {first} ({reason}); there are 2 features."


def test_records_count_from_0_and_may_say_how_many_features_there_are() -> None:
    schema = settled({"train": seen(1, 3, width=9)}, content_type="recordio-protobuf")
    assert (schema.first_index, len(schema.names)) == (None, 9)


def test_dense_and_sparse_channels_need_the_same_width() -> None:
    dense = Summary(rows=2, columns=4)
    named = Declared(Layout(("a", "b", "c", "d"), 4, (0, 1, 2, 3), ()))
    schema = settle(
        named, {"train": dense, "validation": seen(1, 3)}, {"train": "csv", "validation": "libsvm"}, "0"
    )
    assert (schema.names, schema.first_index) == (("a", "b", "c", "d"), 0)
    with pytest.raises(
        UserError, match="channel train has 4 features, channel validation has 6: all channels"
    ):
        settle(
            named,
            {"train": dense, "validation": seen(0, 5)},
            {"train": "csv", "validation": "libsvm"},
            "auto",
        )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (seen(1, MOST), None),
        (seen(0, MOST - 1), None),
        (
            seen(0, MOST),
            "a row with the index 16777216, which makes 16,777,217 features, and a model can have",
        ),
        (seen(1, 2**31 - 1), "a row with the index 2147483647, which makes 2,147,483,647 features, and a"),
        (seen(1, 3, 1 << 40), "a record whose shape says that there are 1,099,511,627,776 features, and a"),
    ],
)
def test_a_huge_index_is_refused_before_there_are_so_many_names(found: Summary, said: str | None) -> None:
    summaries = {"train": seen(1, 3), "validation": found}
    types: dict[str, ContentType] = {"train": "libsvm", "validation": "libsvm"}
    if said is None:
        assert count_features(summaries, types, "auto")[0] == MOST
        return
    with pytest.raises(UserError) as caught:
        settled(summaries)
    assert caught.value.mistakes[0].startswith(f"channel validation has {said}")
    assert caught.value.mistakes[0].endswith("correct that row, or number the features one after the other.")


def test_rows_without_any_value_leave_nothing_to_train_on() -> None:
    with pytest.raises(UserError, match="no row has a value, so there is no feature"):
        settled({"train": seen(None, None)})
    with pytest.raises(UserError, match="no row has a value, so there is no feature"):
        settled({"train": Summary(rows=5, extent=Extent(1, 1), present=0)})


def test_indices_become_positions() -> None:
    lists = [[[1, 3], [], [2]], [[0.5, 1.5], [], [2.5]]]
    batch = Sparse(
        pa.Table.from_arrays(
            [pa.array(items, kind) for items, kind in zip(lists, SPARSE.types, strict=True)], schema=SPARSE
        ),
        {"label": np.zeros(3, np.float32)},
    )
    stored = Stored(summarise(batch), lambda: iter([batch]))
    (moved,) = fitted("train", stored, settled({"train": stored.summary}), "libsvm").batches()
    assert isinstance(moved, Sparse)
    assert moved.indices.tolist() == [0, 2, 1]
    assert moved.offsets.tolist() == [0, 2, 2, 3]
    assert moved.values.tolist() == [0.5, 1.5, 2.5]


def coded(*words: str | None) -> Dense:
    column = pa.array(words, pa.string()).dictionary_encode()
    return Dense(pa.table({"c": column}), {"label": np.zeros(len(words), np.float32)})


CATEGORICAL = Declared(Layout(("c",), 1, (0,), (), (0,)))


def test_batches_get_one_dictionary_whatever_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    train = [coded("b", "a", None), coded("c", "a")]
    validation = [coded("d", "c")]
    channels = {}
    for name, batches in (("train", train), ("validation", validation)):
        summary = summarise(batches[0])
        for batch in batches[1:]:
            summary = summary.merge(summarise(batch))
        channels[name] = Stored(summary, lambda batches=batches: iter(batches))  # type: ignore[misc]
    schema = settled({name: kept.summary for name, kept in channels.items()}, "auto", "csv", CATEGORICAL)
    assert schema.categories == {"c": ("a", "b", "c")}
    codes = {
        name: [
            batch.features["c"].chunk(0).indices.to_pylist()
            for batch in fitted(name, kept, schema, "csv").batches()
        ]
        for name, kept in channels.items()
    }
    assert codes == {"train": [[1, 0, None], [2, 0]], "validation": [[None, 2]]}
    said = capsys.readouterr().out
    assert said == "Channel validation: 1 categories of 'c' are not in train and count as missing: d.\n"


def test_categories_that_train_has_not_at_all_are_missing_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    channels = {}
    for name, rows in (("train", coded(None, None)), ("validation", coded("d", None))):
        channels[name] = Stored(summarise(rows), lambda rows=rows: iter([rows]))  # type: ignore[misc]
    summaries = {name: kept.summary for name, kept in channels.items()}
    schema = settled(summaries, "auto", "csv", CATEGORICAL)
    assert schema.categories == {}
    for name, kept in channels.items():
        (batch,) = fitted(name, kept, schema, "csv").batches()
        assert batch.features["c"].type == pa.float32()
        assert batch.features["c"].to_pylist() == [None, None]
    assert capsys.readouterr().out == (
        "Channel validation: 1 categories of 'c' are not in train and count as missing: d.\n"
    )
    assert describe_unused(schema, summaries["train"]) == [
        "Missing in every row of train: 'c', which is therefore no feature of categories."
    ]
    with_some = summarise(coded("a"))
    assert describe_unused(settled({"train": with_some}, "auto", "csv", CATEGORICAL), with_some) == []


def test_categories_that_are_whole_numbers_are_in_their_order() -> None:
    summary = summarise(coded("10", "9", "-1", "9"))
    assert settled({"train": summary}, "auto", "csv", CATEGORICAL).categories == {"c": ("-1", "9", "10")}


def test_only_categories_that_occur_count() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["never", "a"]))
    batch = Dense(pa.table({"c": column}), {"label": np.zeros(2, np.float32)})
    assert summarise(batch).categories == {"c": frozenset({"a"})}


def test_channels_need_the_same_columns_of_categories() -> None:
    with pytest.raises(
        UserError, match="channel validation has categories in no column, channel train in 'c'"
    ):
        settled({"train": summarise(coded("a")), "validation": seen(0, 0)}, "auto", "csv", CATEGORICAL)
