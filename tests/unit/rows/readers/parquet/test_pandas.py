"""What pandas says in the metadata of Parquet: categories and the index; and labels beyond floats."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

Capture = pytest.CaptureFixture[str]


def saved(table: pd.DataFrame, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    table.to_parquet(sink, **options)
    return bytes(sink.getvalue())


CATEGORIES = {
    "whole": ([30, 10, 20], ["30", "10", "20"]),
    "negative": ([-3, 5, -7], ["-3", "5", "-7"]),
    "truth": ([True, False, True], ["True", "False", "True"]),
    "float": ([2.0, 1.0, 2.0], ["2", "1", "2"]),
    "missing": ([2, None, 1], ["2", None, "1"]),
    "word": (["b", "a", "b"], ["b", "a", "b"]),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_of_pandas_are_such_whatever_their_values(parquet: Data, name: str) -> None:
    values, words = CATEGORIES[name]
    table = saved(pd.DataFrame({"y": [1.0, 2, 3], "c": pd.Categorical(values)}))
    read = parquet.read({"a": table}, dictionaries=True)["c"]
    assert [None if pd.isna(word) else word for word in read] == words


def test_dictionaries_of_numbers_that_arrow_wrote_are_categories(parquet: Data) -> None:
    table = pa.table({"y": [1.0, 2, 3], "c": pa.array([7, 5, 7]).dictionary_encode()})
    assert parquet.read({"a": table}, dictionaries=True)["c"].tolist() == ["7", "5", "7"]


def test_categories_of_numbers_are_numbers_without_the_setting_which_is_said(
    parquet: Data, capsys: Capture
) -> None:
    table = saved(pd.DataFrame({"y": [1.0, 2], "c": pd.Categorical([30, 10]), "a": [1, 2]}))
    assert parquet.read({"a": table})["c"].tolist() == [30, 10]
    said = (
        "Notice: train/a: pandas has categories in 'c', which are read as numbers: set "
        "enable_categorical=true, or "
        "name them in categorical_columns.\n"
    )
    assert said in capsys.readouterr().out
    assert parquet.read({"a": table}, categorical=("c",))["c"].tolist() == ["30", "10"]
    assert "Notice" not in capsys.readouterr().out


def test_a_label_of_categories_is_a_number(parquet: Data) -> None:
    table = saved(pd.DataFrame({"y": pd.Categorical([1, 0]), "a": [1, 2]}))
    assert parquet.read({"a": table}, dictionaries=True)["<label>"].tolist() == [1, 0]


def test_categories_that_are_fractions_are_refused(parquet: Data) -> None:
    table = saved(pd.DataFrame({"y": [1.0, 2], "c": pd.Categorical([0.5, 1.5])}))
    assert parquet.refused({"a": table}, dictionaries=True) == (
        (
            "train/a, column 1 ('c'): it holds numbers that are not whole, so they are no categories. "
            "Write them as whole numbers or words, or save the column as numbers and leave it out of "
            "categorical_columns."
        ),
    )


@pytest.mark.parametrize("values", [[1.5, 2.5, 1.5], [1, 0, 0], [True, False, True]])
def test_a_label_that_was_saved_as_an_index_is_refused(parquet: Data, values: list[Any]) -> None:
    table = pd.DataFrame({"y": values, "a": [1.0, 2, 3], "b": [3.0, 4, 5]}).set_index("y")
    assert parquet.refused({"a": saved(table)}) == (
        (
            "train/a has 'y' as the index of a table of pandas, which is left out and may be the label: "
            "name the label in label_column, and if it is the index, make it a column, with reset_index() "
            "before to_parquet()."
        ),
    )
    assert parquet.read({"a": saved(table)}, label="a")["<label>"].tolist() == [1, 2, 3]
    assert parquet.read({"a": saved(table)}, drop=("y",))["<label>"].tolist() == [1, 2, 3]


def test_an_index_that_can_be_no_label_is_left_out(parquet: Data) -> None:
    table = pd.DataFrame({"y": [1.0, 2], "a": [3.0, 4]}, index=pd.Index(["u", "v"], name="id"))
    assert parquet.read({"a": saved(table)})["<label>"].tolist() == [1, 2]
    assert parquet.read({"b": saved(table.reset_index(drop=True)[::-1])})["<label>"].tolist() == [2, 1]


def test_a_column_without_a_name_that_counts_the_rows_is_left_out(parquet: Data, capsys: Capture) -> None:
    table = pd.DataFrame(
        {"Unnamed: 0.1": [0, 1, 2], "Unnamed: 0": [5, 6, 7], "y": [1.0, 0, 1], "a": [2.0, 3, 4]}
    )
    read = parquet.read({"a": saved(table), "b": saved(table.assign(y=2.0))})
    assert list(read) == ["a", "<label>"]
    assert "Notice: train/a: column 0, column 1 without a name count the rows" in capsys.readouterr().out


@pytest.mark.parametrize("numbers", [[2, 1, 0], [0, 1, 1], [0.0, 1.0, 2.0], ["0", "1", "2"], [0, None, 2]])
def test_a_column_without_a_name_that_does_not_count_is_refused(parquet: Data, numbers: list[Any]) -> None:
    good = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "y": [1.0, 0, 1], "a": [2.0, 3, 4]})
    bad = good.assign(**{"Unnamed: 0": pd.Series(numbers, dtype="Int64" if None in numbers else None)})
    assert "train/a: the first column has no name" in parquet.refused({"a": saved(bad)})[0]
    assert "train/b, column 0 ('Unnamed: 0')" in parquet.refused({"a": saved(good), "b": saved(bad)})[0]
    assert list(parquet.read({"a": saved(bad)}, drop=(0,))) == ["a", "<label>"]


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([1, 2**53 + 1]),
        pa.array([1, 2**63 + 5], pa.uint64()),
        pa.array([None, -(2**62)]),
        pa.array([decimal.Decimal(1), decimal.Decimal(10**20)], pa.decimal128(38, 0)),
    ],
)
def test_a_label_beyond_what_floats_tell_apart_is_refused(parquet: Data, labels: pa.Array) -> None:
    mistake = parquet.refused({"a": pa.table({"y": labels, "a": [1, 2]})})[-1]
    assert mistake == (
        f"train/a, row 1, column 0 ('y'): {labels[1].as_py()} is a whole number beyond 2^53, of which 32 "
        "bits hold the first 7 digits. Subtract a base from all labels or divide them, or name another "
        "column with label_column."
    )
    assert len(parquet.read({"a": pa.table({"y": [1, 2**53], "a": [1, 2]})})) == 2
