"""libsvm channels: what is read, what is refused, and in which words."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from sklearn.datasets import dump_svmlight_file

from smxgb.errors import UserError
from smxgb.rows.readers.libsvm import lines
from smxgb.rows.summary import Extent, summarise

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NAN = float("nan")
SAME = "all lines need it, or none."


def table(columns: dict[object, list[float]]) -> pd.DataFrame:
    return pd.DataFrame(columns).astype(np.float32)


PLAIN = table({0: [2, NAN], 3: [0.5, 7], "<label>": [1, 0]})


@pytest.mark.parametrize(
    "text",
    [
        "1 0:2 3:0.5\n0 3:7\n",
        "1 0:2 3:0.5\n0 3:7",
        "1 0:2 3:0.5\r\n0 3:7\r\n",
        "1 0:2 3:0.5\r0 3:7\r",
        "\ufeff1 0:2 3:0.5\n0 3:7\n",
        "1\t0:2  3:0.5 \n\n \t\n  0\v3:7\f\n\n",
        "# made by hand\n1 0:2 3:.5 # a comment: 7:8\n+0 3:7e0#\n",
        "1 3:0.5 0:2\n0 3:7\n",
    ],
)
def test_labels_and_pairs_are_read_whatever_stands_between_them(libsvm: Data, text: str) -> None:
    assert_frame_equal(libsvm.read(text), PLAIN)


def test_a_zero_that_is_written_is_a_zero_and_an_absent_index_is_missing(libsvm: Data) -> None:
    assert_frame_equal(
        libsvm.read("1 0:0 1:nan\n0 1:2\n"), table({0: [0, NAN], 1: [NAN, 2], "<label>": [1, 0]})
    )


def test_a_row_may_have_no_feature(libsvm: Data) -> None:
    assert_frame_equal(libsvm.read("1\n0 5:1\n1\n"), table({5: [NAN, 1, NAN], "<label>": [1, 0, 1]}))


def test_a_weight_stands_behind_the_label(libsvm: Data) -> None:
    read = libsvm.read("1:0.5 0:2\n0:3\n-1:0 0:4\n")
    assert_frame_equal(read, table({0: [2, NAN, 4], "<label>": [1, 0, -1], "<weight>": [0.5, 3, 0]}))


def test_a_group_is_any_whole_number(libsvm: Data) -> None:
    read = libsvm.read(f"2:1 qid:{2**53 + 1} 1:0.5\n0:1 qid:3\n")
    assert read["<group>"].tolist() == [2**53 + 1, 3]
    assert read["<weight>"].tolist() == [1, 1]
    assert read[1].iloc[0] == 0.5


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("1 0:2\n0 1:x\n", 2, "'1:x' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n\n# two\n0 b:1\n", 4, "'b:1' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 3\n", 2, "'3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 -1:3\n", 2, "'-1:3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 -2:3\n", 2, "'-2:3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 0x10:3\n", 2, "'0x10:3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 1:0X1\n", 2, "'1:0X1' is not index:value: an index is a whole number, 0 or more."),
        ("1:2 0:2\n0 -2:5 1:3\n", 2, f"the line has no weight, the channel's first line has one: {SAME}"),
        ("1:2 0:2\n0:1\t-2:5\n", 2, "'-2:5' is not index:value: an index is a whole number, 0 or more."),
        ("1 qid:1 0:2\n0 -3:5 1:3\n", 2, f"the line has no qid, the channel's first line has one: {SAME}"),
        ("1 0:2\n0 1:2:3\n", 2, "'1:2:3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 :3\n", 2, "':3' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 3:\n", 2, "'3:' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 0 : 3\n", 2, "'0' is not index:value: an index is a whole number, 0 or more."),
        ("1 0:2\n0 qid:1 1:2\n", 2, f"the line has a qid, the channel's first line has none: {SAME}"),
        ("1 qid:1 0:2\n0 1:2\n", 2, f"the line has no qid, the channel's first line has one: {SAME}"),
        ("1 qid:1 0:2\n0 qid:a\n", 2, "'qid:a' is not a group: qid: and a whole number are needed."),
        ("1:2 0:2\n0 1:2\n", 2, f"the line has no weight, the channel's first line has one: {SAME}"),
        ("1 0:2\n0:1 1:2\n", 2, f"the line has a weight, the channel's first line has none: {SAME}"),
        ("1 0:2\nyes 1:2\n", 2, "'yes' is not a label: a line begins with a number, or with label:weight."),
        (
            "1 0:2\n0 2:1 1:3 2:4\n",
            2,
            "the index 2 stands there twice: give each feature of a row one value.",
        ),
        ("1 0:2\n0 2147483648:1\n", 2, "'2147483648:1' has too large an index: 2147483647 is the largest."),
        (
            "1 0:2\n0 1:" + "9" * 99 + "x\n",
            2,
            "'1:" + "9" * 38 + "...' is not index:value: an index is a whole",
        ),
    ],
)
def test_a_malformed_token_names_file_line_and_text(
    libsvm: Data, text: str, line: int, complaint: str
) -> None:
    (said,) = libsvm.refused({"deep/a.svm": text})
    assert said.startswith(f"train/deep/a.svm, line {line}: {complaint}")


def test_several_bad_lines_are_reported_together(libsvm: Data) -> None:
    assert [text.split(":")[0] for text in libsvm.refused("1 0:x\n1 0:1\n" * 3)] == [
        f"train/a.libsvm, line {line}" for line in (1, 3, 5)
    ]


def test_the_line_of_a_late_mistake_is_right(libsvm: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines.line_blocks, "__defaults__", (64,))
    (said,) = libsvm.refused("# head\n" + "1 0:1 1:2\n\n" * 1000 + "1 0:?\n")
    assert said.startswith("train/a.libsvm, line 2002: '0:?' is not")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 0:1\nnan 0:2\n", "train/a.libsvm, line 2, label: 'nan 0:2' is not a label: a finite number is"),
        (
            "1:1 0:1\n\n1:-2 0:2\n",
            "train/a.libsvm, line 3, weight: '1:-2 0:2' is not a weight: a finite number",
        ),
        (
            "1 0:1\n1 0:1 1:1e400\n",
            "train/a.libsvm, line 2, index 1: inf is infinite, or beyond",
        ),
    ],
)
def test_the_rules_for_rows_hold_here_too(libsvm: Data, text: str, said: str) -> None:
    (found,) = libsvm.refused(text)
    assert found.startswith(said)


def test_infinite_values_may_count_as_missing(libsvm: Data, capsys: pytest.CaptureFixture[str]) -> None:
    read = libsvm.read("1 0:1 1:inf\n0 0:2 1:3\n", infinity="missing")
    assert_frame_equal(read, table({0: [1, 2], 1: [NAN, 3], "<label>": [1, 0]}))
    assert "Channel train: 1 infinite values count as missing: values 1." in capsys.readouterr().out


def test_rows_without_a_valid_label_may_be_dropped(libsvm: Data) -> None:
    read = libsvm.read("1 0:1\nnan 0:2 1:5\n0 1:3\n", invalid_label="drop")
    assert_frame_equal(read, table({0: [1, NAN], 1: [NAN, 3], "<label>": [1, 0]}))


def test_features_may_be_bounds_weights_or_groups_and_keep_their_places(libsvm: Data) -> None:
    read = libsvm.read(
        "0 1:1 2:5 3:4 7:9\n0 1:2 2:inf 3:6 5:8 7:9\n", lower=1, upper=2, weight=3, group=7, drop=(5,)
    )
    assert read["<lower>"].tolist() == [1, 2]
    assert read["<upper>"].tolist() == [5, np.inf]
    assert read["<weight>"].tolist() == [4, 6]
    assert read["<group>"].tolist() == [9, 9]
    assert list(read[[1, 2, 3, 5, 7]].count()) == [0] * 5


def test_a_feature_that_is_taken_still_tells_where_features_begin_and_end(libsvm: Data) -> None:
    reader = libsvm.reader("1 0:2 1:4\n0 0:5 2:3\n", weight=0, drop=(2,))
    (batch,) = reader.batches()
    summary = summarise(batch)
    assert summary.extent == Extent(0, 2, labels_ascend=False)
    assert summary.present == 1
    assert batch.roles["weight"].tolist() == [2, 5]


def test_a_group_beyond_what_a_value_holds_exactly_is_refused_with_the_cure(libsvm: Data) -> None:
    assert libsvm.read("1 1:16777215 2:1\n", group=1)["<group>"].tolist() == [2**24 - 1]
    assert libsvm.refused("1 1:16777217 2:1\n0 1:16777216 2:3\n", group=1) == (
        (
            "train/a.libsvm, line 1, group: '1 1:16777217 2:1' is not a group: an integer is needed (so too "
            "line 2). Number the groups with integers below 2^24, since values are read as 32-bit floats, or "
            "write larger ones behind qid:."
        ),
    )


def test_settings_that_name_columns_are_refused_together(libsvm: Data) -> None:
    assert libsvm.refused("1:2 0:1\n", label=0, weight=3, group="q", categorical=(1,)) == (
        "label_column=0: the rows of train/a.libsvm have a label of their own: leave it out.",
        "weight_column=3: the rows of train/a.libsvm have a weight of their own: leave it out.",
        "group_column=q: train/a.libsvm has no names: give a feature's index as it stands there.",
        (
            "categorical_columns: train/a.libsvm holds numbers only: leave it out, or give the channel as "
            "CSV or Parquet."
        ),
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            b"PAR1....",
            "is a Parquet file, not libsvm: give its channel the content type application/x-parquet.",
        ),
        (b"1,2,3\n", "is not libsvm (its first line is '1,2,3'): a line is a label and index:value pairs."),
        (b"\0\1\2", "is not libsvm: it holds bytes that are not text."),
    ],
)
def test_what_is_no_libsvm_is_refused_in_one_sentence(libsvm: Data, content: bytes, complaint: str) -> None:
    (said,) = libsvm.refused(content)
    assert said.startswith(f"train/a.libsvm {complaint}")


def test_a_channel_without_a_row_is_refused(libsvm: Data) -> None:
    assert libsvm.refused(b"# nothing\n \n") == ("channel train: none of its files holds a row.",)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), base=st.sampled_from([0, 1]), size=st.sampled_from([16, 100, 1 << 20]))
def test_what_scikit_learn_writes_comes_back(libsvm: Data, data: st.DataObject, base: int, size: int) -> None:
    cell = st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda value: value or 1.0)
    width = data.draw(st.integers(1, 6), label="width")
    row = st.lists(cell, min_size=width, max_size=width)
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=30), label="rows"))
    labels = np.array(data.draw(st.lists(cell, min_size=len(rows), max_size=len(rows)), label="labels"))
    groups = data.draw(st.none() | st.just(np.arange(len(rows)) // 3), label="groups")
    stream = io.BytesIO()
    dump_svmlight_file(rows, labels, stream, zero_based=base == 0, query_id=groups, comment="by scikit-learn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines.line_blocks, "__defaults__", (size,))
        read = libsvm.read(stream.getvalue())
    assert np.array_equal(read["<label>"], labels.astype(np.float32))
    assert np.array_equal(read[list(range(base, width + base))].to_numpy(), rows.astype(np.float32))
    if groups is not None:
        assert np.array_equal(read["<group>"], groups)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.one_of(
        st.binary(min_size=1, max_size=300),
        st.text("0123456789.:#qid \r\n\t\v-+eENAninf", min_size=1, max_size=200).map(str.encode),
        st.lists(
            st.sampled_from(
                ["1", "0:1", "1:2.5", "qid:1", "-1:2", "-2:3", "-3:1", "\n", "#", ":", "nan", "7:"]
            ),
            min_size=1,
            max_size=40,
        ).map(lambda tokens: " ".join(tokens).encode()),
    )
)
def test_any_bytes_are_read_or_refused(libsvm: Data, text: bytes) -> None:
    with suppress(UserError):
        read = libsvm.read(text)
        lines = [line.split(b"#")[0] for line in text.replace(b"\r", b"\n").split(b"\n")]
        assert len(read) == sum(bool(line.removeprefix(b"\xef\xbb\xbf").strip()) for line in lines)
        assert np.isfinite(read.get("<label>", 0.0)).all()  # no row, no column


@pytest.mark.parametrize("side", ["1\n2\n0.5\n", "30\n20\n", "\n1 # weight\n2\n"])
def test_a_file_of_numbers_beside_rows_is_refused(libsvm: Data, side: str) -> None:
    (mistake,) = libsvm.refused({"a.libsvm": "1 1:2\n0 2:3\n", "b": side})
    assert mistake.startswith("train/b, line 1: ")
    assert (
        "no line of the file has an index:value pair. Weights stand in the lines, as label:weight" in mistake
    )


def test_a_row_without_a_value_is_read(libsvm: Data, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(libsvm.read({"a": "1\n0 2:3\n"})) == 2
    assert "Notice" not in capsys.readouterr().out
    assert len(libsvm.read({"a": "1\n0 2:3\n", "b": "60\n"})) == 3
    said = "Notice: train/b, line 1: '60' is read as the label of a row without a value. Weights stand in the"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("first", "second", "said"), [(0, 1, 1), (1, 0, 1), (0, 0, 0), (1, 1, 0)])
def test_files_that_count_from_another_index_are_noticed(
    libsvm: Data, first: int, second: int, said: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(base: int) -> str:
        return "".join(f"{row % 2} {base}:{row} {base + 1}:{row % 5}\n" for row in range(30))

    assert len(libsvm.read({"a": rows(first), "b": rows(second)})) == 60
    assert capsys.readouterr().out.count("seems to count features from 1, and train/") == said
