"""Parquet channels: which types and files are read, what is refused, and in which words."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from smxgb.errors import UserError
from smxgb.rows.batch import ROWS

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NAN = float("nan")
SAME = "Every file of every channel needs the same columns, in any order."
DAMAGED = "can't be read as Parquet: it is damaged or cut off. Write or upload it again."


def frame(columns: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(columns).astype(np.float32)


def saved(table: pd.DataFrame, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    table.to_parquet(sink, **options)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1.5, None], pa.float64()), [1.5, NAN]),
        (pa.array([1.5, NAN], pa.float32()), [1.5, NAN]),
        (pa.array(np.array([1.5, 2], np.float16)), [1.5, 2]),
        (pa.array([7, None], pa.int64()), [7, NAN]),
        (pa.array([2**64 - 1, 0], pa.uint64()), [2.0**64, 0]),
        (pa.array([16_777_217, 0], pa.int32()), [16_777_216, 0]),
        (pa.array([True, None], pa.bool_()), [1, NAN]),
        (pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)), [1.25, NAN]),
        (pa.array([None, None], pa.null()), [NAN, NAN]),
    ],
)
def test_numbers_of_every_type_are_read(parquet: Data, column: pa.Array, expected: list[float]) -> None:
    read = parquet.read(pa.table({"y": [1, 0], "a": column}))
    assert_frame_equal(read, frame({"a": expected, "<label>": [1, 0]}))


@pytest.mark.parametrize(
    "kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(60, 2)]
)
def test_decimals_are_the_floats_that_python_makes_of_them(parquet: Data, kind: pa.DataType) -> None:
    values = [decimal.Decimal(cents) / 100 for cents in range(-20_000, 20_000, 7)]
    read = parquet.read(pa.table({"y": values, "a": pa.array(values, kind)}))
    expected = np.array([float(value) for value in values], np.float32)
    assert np.array_equal(read["a"], expected)
    assert np.array_equal(read["<label>"], expected)


def test_arrow_backed_and_nullable_pandas_types_are_read(parquet: Data) -> None:
    table = pd.DataFrame({"y": [1, 0], "a": [3, None]}).astype({"y": "int32[pyarrow]", "a": "Int64"})
    assert_frame_equal(parquet.read(saved(table)), frame({"a": [3, NAN], "<label>": [1, 0]}))


def test_all_columns_that_hold_no_numbers_are_listed(parquet: Data) -> None:
    good = pa.table({"y": [1], "when": [1], "name": [2], "kind": [3], "tags": [4], "a": [5]})
    bad = pa.table(
        {
            "y": [1],
            "when": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us")),
            "name": ["x"],
            "kind": pa.array(["x"]).dictionary_encode(),
            "tags": [[1, 2]],
            "a": [5],
        }
    )
    complaint = (
        "columns that hold no numbers: 'when' (timestamp[us]), 'name' (string), 'kind' "
        "(dictionary<values=string, indices=int32, ordered=0>), 'tags' (list<element: int64>). Integers, "
        "floats, decimals and booleans are read. Encode the others as numbers, name those of words in "
        "categorical_columns (or set enable_categorical=true for all dictionaries), or leave them out with "
        "drop_columns=when,name,kind,tags."
    )
    files = {"1.parquet": good, "2.parquet": bad, "3.parquet": bad}
    assert parquet.refused(files) == (f"train/2.parquet and 1 more file: {complaint}",)
    read = parquet.read(files, drop=("when", "name", "kind", "tags"))
    assert read.to_numpy().tolist() == [[5, 1]] * 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(2020, 1, 1)]),
        pa.array([dt.time(1)]),
        pa.array([b"x"]),
        pa.array([{"b": 1}]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([dt.timedelta(1)], pa.duration("s")),
        pa.array(["x"], pa.large_string()),
    ],
)
def test_other_types_are_refused(parquet: Data, column: pa.Array) -> None:
    (text,) = parquet.refused(pa.table({"y": [1], "a": column}))
    assert text.startswith("train/a.parquet: columns that hold no numbers: 'a' (")


def test_a_label_that_is_no_number_is_refused(parquet: Data) -> None:
    (text,) = parquet.refused(pa.table({"y": ["1"], "a": [1]}))
    assert text.startswith(
        "train/a.parquet: the label, column 0 ('y'), is of type string: set class_labels=auto"
    )


def test_an_index_that_pandas_saved_is_left_out(parquet: Data, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"y": [1, 1, 0, 1], "a": [2.0, 3, 4, 5]})
    read = parquet.read({"1.parquet": saved(table[table.y == 1]), "2.parquet": saved(table)})
    assert_frame_equal(read, frame({"a": [2, 3, 5, 2, 3, 4, 5], "<label>": [1, 1, 1, 1, 1, 0, 1]}))
    out = capsys.readouterr().out
    assert "Channel train: left out the index that pandas saved: __index_level_0__.\n" in out


def test_an_index_whose_description_was_lost_is_left_out_too(
    parquet: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"y": [1, 0], "a": [2, 3], "__index_level_0__": [7, 9]})
    assert list(parquet.read(table)) == ["a", "<label>"]
    assert "left out the index that pandas saved: __index_level_0__." in capsys.readouterr().out
    assert list(parquet.read(table, drop=("__index_level_0__",))) == ["a", "<label>"]


@pytest.mark.parametrize("labels", [[1, 0, 1], [1, 0, -1]])  # the second is a range, which is no column
def test_a_label_that_pandas_saved_as_the_index_is_said_to_be_one(parquet: Data, labels: list[int]) -> None:
    table = pd.DataFrame({"y": labels, "a": [2.0, 3, 4], "b": [4, 5, 6]}).set_index("y")
    assert parquet.refused(saved(table), label="y") == (
        (
            "label_column=y: train/a.parquet has 'y' as the index of a table of pandas, which is left out: "
            "make it a column, with reset_index() before to_parquet()."
        ),
    )


def test_duplicate_names_are_named(parquet: Data) -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], ["y", "a", "a"])
    assert parquet.refused(table) == (
        "train/a.parquet has several columns of the same name: 'a'. Give each a name of its own.",
    )


def test_files_and_channels_are_aligned_by_name(parquet: Data) -> None:
    first = pa.table({"y": [1], "a": [2], "b": [3.5]})
    other = pa.table({"b": pa.array([6], pa.int8()), "y": [0.0], "a": [5.0]})
    read = parquet.read({"1.parquet": first, "2.parquet": other})
    expected = frame({"a": [2, 5], "b": [3.5, 6], "<label>": [1, 0]})
    assert_frame_equal(read, expected)
    schema = parquet.declared(first)
    read = parquet.read(other, like=schema, name="validation")
    assert_frame_equal(read, expected.iloc[1:].reset_index(drop=True))


def test_files_with_other_columns_are_all_named(parquet: Data) -> None:
    files = {
        "1.parquet": pa.table({"y": [1], "a": [2]}),
        "2.parquet": pa.table({"y": [1], "b": [2]}),
        "3.parquet": pa.table({"a": [1]}),
    }
    assert parquet.refused(files) == (
        (
            "train/2.parquet lacks column 1 ('a') of train/1.parquet and has column 1 ('b'), which "
            f"train/1.parquet does not have: it has 2 columns, train/1.parquet has 2. {SAME}"
        ),
        "train/3.parquet lacks column 0 ('y') of train/1.parquet: it has 1 column, train/1.parquet has "
        "2. " + SAME,
    )


def test_csv_weights_say_nothing_about_parquet(parquet: Data) -> None:
    read = parquet.read(pa.table({"y": [1], "a": [2], "b": [3]}), csv_weights=True)
    assert list(read) == ["a", "b", "<label>"]


def test_files_without_rows_are_fine(parquet: Data) -> None:
    table = pa.table({"y": [1], "a": [2]})
    files = {"1.parquet": table.slice(1), "2.parquet": table, "3.parquet": table.slice(1)}
    assert len(parquet.read(files)) == 1
    assert parquet.read(table.slice(1)).empty


def test_the_columns_of_files_without_rows_do_not_matter_where_others_have_rows(parquet: Data) -> None:
    table = pa.table({"y": [1], "a": [2]})
    files = {
        "1.parquet": pa.table({"y": pa.array([], pa.string()), "a": pa.nulls(0)}),
        "2.parquet": table,
        "3.parquet": pa.table({"y": pa.nulls(0)}),
    }
    read = parquet.read(files)
    assert_frame_equal(read, frame({"a": [2], "<label>": [1]}))
    assert (
        "the label, column 0 ('y'), is of type string"
        in parquet.refused({"1.parquet": files["1.parquet"]})[0]
    )


def test_what_is_no_label_is_refused_or_dropped(parquet: Data) -> None:
    table = pa.table({"y": [1, None, 0, NAN, float("inf")], "a": [1, 2, 3, 4, 5]})
    assert parquet.refused({"1.parquet": table.slice(0, 1), "2.parquet": table}) == (
        (
            "train/2.parquet, row 1, column 0 ('y'): the label is empty: a finite number is needed (so "
            "too rows 3, 4). Correct these rows (words as classes: class_labels=auto), leave them out with "
            "invalid_label=drop, or name another column with label_column."
        ),
    )
    read = parquet.read(table, invalid_label="drop")
    assert_frame_equal(read, frame({"a": [1, 3], "<label>": [1, 0]}))


def test_an_infinite_feature_is_refused_or_missing(parquet: Data) -> None:
    rows = ROWS + 10
    values = np.ones(rows)
    values[-3] = 1e300
    table = pa.table({"y": np.zeros(rows), "a": values, "b": np.full(rows, 3e38)})
    assert parquet.refused(table) == (
        (
            f"train/a.parquet, row {rows - 3}, column 1 ('a'): 1e+300 is infinite, or beyond a 32-bit float "
            "(3.4e38). Correct the values, or let them count as missing with infinity=missing."
        ),
    )
    assert parquet.read(table, infinity="missing")["a"].isna().sum() == 1


def test_weights_groups_and_bounds_are_checked(parquet: Data) -> None:
    table = pa.table({"y": [1, 0], "w": [1.0, -1], "g": [2**40, None], "lo": [NAN, 0], "a": [1, 2]})
    assert parquet.refused(table, weight="w", group="g", lower="lo", label="y") == (
        (
            "train/a.parquet, row 1, column 1 ('w'): -1.0 is not a weight: a finite number, 0 or more, is "
            "needed. Correct these rows."
        ),
        (
            "train/a.parquet, row 1, column 2 ('g'): the group is empty: an integer is needed. Number the "
            "groups."
        ),
        (
            "train/a.parquet, row 0, column 3 ('lo'): nan is not a lower bound: a number, 0 or more, or -inf "
            "is needed. Correct these rows."
        ),
    )
    flags = pa.table({"y": [1], "g": [True], "a": [1]})
    assert parquet.refused(flags, group="g") == (
        "train/a.parquet: the group, column 1 ('g'), is of type bool: number the groups with integers.",
    )


def test_groups_may_be_whole_floats(parquet: Data) -> None:
    table = pa.table({"y": [1, 0], "g": [3.0, 2.0**40], "a": [1, 2]})
    assert parquet.read(table, group="g")["<group>"].tolist() == [3, 2**40]
    broken = table.set_column(1, "g", pa.array([3.0, 1.5]))
    assert parquet.refused(broken, group="g")[0].startswith(
        "train/a.parquet, row 1, column 1 ('g'): 1.5 is not a group: an integer is needed."
    )


@pytest.mark.parametrize(("kind", "beyond"), [(pa.float32(), 2**24), (pa.float64(), 2**53)])
def test_a_group_that_a_float_may_have_rounded_is_none(parquet: Data, kind: pa.DataType, beyond: int) -> None:
    table = pa.table({"y": [1, 0], "g": pa.array([beyond - 1, beyond], kind), "a": [1, 2]})
    assert parquet.read(table.slice(0, 1), group="g")["<group>"].tolist() == [beyond - 1]
    (said,) = parquet.refused(table, group="g")
    assert said.startswith("train/a.parquet, row 1, column 1 ('g'): ")
    assert said.endswith(
        "is not a group: an integer is needed. Number the groups with integers: a 32-bit float holds only "
        "those below 2^24 exactly, a 64-bit one those below 2^53."
    )


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_file_that_is_cut_off_is_named(parquet: Data, keep: float) -> None:
    content = saved(pd.DataFrame({"y": np.zeros(1000), "a": np.random.default_rng(0).random(1000)}))
    assert parquet.refused(content[: int(len(content) * keep)]) == (f"train/a.parquet {DAMAGED}",)


def test_a_file_whose_pages_are_damaged_is_named(parquet: Data) -> None:
    content = bytearray(
        saved(pd.DataFrame({"y": np.zeros(1000), "a": np.random.default_rng(0).random(1000)}))
    )
    content[4:60] = bytes(56)
    assert parquet.refused(bytes(content)) == (f"train/a.parquet {DAMAGED}",)


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Hides no key: what encrypts here is Parquet."""

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


@pytest.mark.parametrize("plain", [False, True])
def test_an_encrypted_file_is_said_to_be_one(parquet: Data, plain: bool) -> None:  # noqa: FBT001
    chosen = pe.EncryptionConfiguration(
        footer_key="k", column_keys={"k": ["a"]}, plaintext_footer=plain, data_key_length_bits=128
    )
    factory = pe.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), chosen)
    table = pa.table({"y": [1.0, 0], "a": [1.0, 2], "b": [3.0, 4]})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    content = bytes(sink.getvalue())
    assert parquet.refused(content) == (
        (
            "train/a.parquet is encrypted by Parquet itself, and the job has no key: write it without "
            "encryption properties. What S3 encrypts (SSE-KMS) is read as it is."
        ),
    )
    if plain:  # the other columns can be read
        assert list(parquet.read(content, drop=("a",))) == ["b", "<label>"]


def test_a_column_may_be_called_as_the_field_of_another(parquet: Data) -> None:
    table = pa.table({"y": [1, 0], "a": [{"b": 10}, {"b": 20}], "a.b": [1, 2]})
    read = parquet.read(table, drop=("a",))
    assert_frame_equal(read, frame({"a.b": [1, 2], "<label>": [1, 0]}))


def test_what_is_set_is_not_advised(parquet: Data) -> None:
    words = pa.array(["x", "z"])
    files = {
        "1.parquet": pa.table({"y": [1, 0], "c": words, "a": [1, 2]}),
        "2.parquet": pa.table({"y": [1, 0], "c": words.dictionary_encode(), "a": [1, 2]}),
    }
    for text in parquet.refused(files, dictionaries=True):
        assert text.endswith(
            "Encode the others as numbers, name those of words in categorical_columns, or leave them out "
            "with drop_columns=c."
        )
    assert len(parquet.read(files, dictionaries=True, categorical=("c",))) == 4


def test_a_file_of_another_kind_is_named(parquet: Data) -> None:
    assert parquet.refused(b"1,2\n3,4\n") == (
        "train/a.parquet is not a Parquet file: it does not begin with PAR1.",
    )


def test_row_groups_become_full_batches_in_order(parquet: Data, tmp_path: Any) -> None:
    rows = 2 * ROWS + 5
    table = pa.table({"y": np.arange(rows), "a": np.arange(rows) / 4})
    pq.write_table(table, tmp_path / "groups.parquet", row_group_size=50_000)
    reader = parquet.reader((tmp_path / "groups.parquet").read_bytes())
    assert reader.expected_rows == rows
    assert reader.can_repeat is (parquet.mode == "File")
    for _ in range(2):
        batches = list(reader.batches())
        assert [batch.rows for batch in batches] == [ROWS, ROWS, 5]
        assert np.array_equal(np.concatenate([batch.roles["label"] for batch in batches]), np.arange(rows))


def test_csv_and_parquet_copies_of_one_table_give_equal_rows(csv: Data, parquet: Data) -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(size=(70_000, 5)).astype(np.float32)
    values[generator.random(values.shape) < 0.1] = NAN
    table = pd.DataFrame(values, columns=list("abcde"))
    table.insert(0, "y", generator.integers(0, 2, len(table)))
    text = csv.read(table.to_csv(index=False))
    assert_frame_equal(text, parquet.read(saved(table)))
    assert csv.declared(table.to_csv(index=False)) == parquet.declared(saved(table))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=200), framed=st.booleans())
def test_any_bytes_are_refused(parquet: Data, content: bytes, *, framed: bool) -> None:
    with pytest.raises(UserError):
        parquet.read(b"PAR1" + content + b"PAR1" if framed else content)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), width=st.integers(1, 4), rows=st.integers(1, 30), group=st.integers(1, 30))
def test_what_pyarrow_writes_comes_back(
    parquet: Data, data: st.DataObject, width: int, rows: int, group: int
) -> None:
    cells = st.one_of(st.none(), st.floats(width=32, allow_infinity=False))
    columns = [data.draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in range(width)]
    types = data.draw(st.lists(st.sampled_from([pa.float32(), pa.float64()]), min_size=width, max_size=width))
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    table = pa.table([pa.array(range(rows)), *arrays], ["y", *(f"c{index}" for index in range(width))])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group)
    read = parquet.read(bytes(sink.getvalue()))
    expected = table.to_pandas().astype(np.float32)
    assert np.array_equal(read["<label>"], expected["y"])
    assert np.array_equal(read.iloc[:, :-1], expected.iloc[:, 1:], equal_nan=True)


def test_a_double_beyond_32_bits_is_refused_wherever_it_stands(parquet: Data) -> None:
    for values in ([1e39, 1.0, 2.0], [1.0, 2.0, 1e39], [1e39, 1e39, 1e39]):
        (text,) = parquet.refused(pa.table({"y": [0.5, 1.0, 2.0], "a": values}))
        assert "is infinite, or beyond a 32-bit float (3.4e38)" in text
