"""The columns that settings name: by their names first, for names may be numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NUMBERED = "4,0,1,2,3\n9,10,11,12,13\n29,20,21,22,23\n"
"""A table whose names are numbers, each of them the index of another column."""


@pytest.mark.parametrize(("ref", "label"), [(4, [9, 29]), ("4", [9, 29]), (0, [10, 20]), (3, [13, 23])])
def test_a_name_that_is_a_number_comes_before_the_index(csv: Data, ref: object, label: list[int]) -> None:
    read = csv.read(NUMBERED, header="true", label=ref)
    assert read["<label>"].tolist() == label


@pytest.mark.parametrize(("ref", "label"), [(4, 9), (0, 10)])
def test_a_name_that_is_a_number_comes_before_the_index_in_parquet(
    parquet: Data, ref: object, label: int
) -> None:
    table = pa.table({name: [float(value)] for name, value in zip("40123", (9, 10, 11, 12, 13), strict=True)})
    assert parquet.read({"a": table}, label=ref)["<label>"].tolist() == [label]


def test_every_setting_that_takes_a_column_takes_the_name(csv: Data) -> None:
    read = csv.read(NUMBERED, header="true", label=4, weight=1, drop=(0,), categorical=(2,))
    assert read["<label>"].tolist() == [9, 29]
    assert read["<weight>"].tolist() == [11, 21]
    assert read["2"].tolist() == ["12", "22"]
    assert list(read) == ["2", "3", "<label>", "<weight>"]


def test_names_with_signs_and_zeros_are_told_from_indices(csv: Data) -> None:
    text = "01,02,-1,a\n9,10,11,12\n"
    assert csv.read(text, label="01", header="true")["<label>"].tolist() == [9]
    assert csv.read(text, label=-1, header="true")["<label>"].tolist() == [11]
    assert csv.read(text, label="03", header="true")["<label>"].tolist() == [12]
    assert csv.read(text, label=1, header="true")["<label>"].tolist() == [10]


def test_the_log_says_which_was_taken_where_name_and_index_are_both_possible(
    csv: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.read(NUMBERED, header="true", label=4)
    line = (
        "label_column=4 is taken for the name of column 0 ('4') of train/a.csv, and not for the index of "
        "column 4 "
        "('3').\n"
    )
    assert capsys.readouterr().out.count(line) == 1
    csv.read("a,b,2\n1,2,3\n", header="true", label=2)
    assert "is taken for the name" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["None", "null"])
def test_a_column_whose_name_means_that_a_setting_is_not_given_is_noticed(
    csv: Data, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"x,z,{name}\n1,5,2\n3,6,4\n"
    assert csv.read(text)["<label>"].tolist() == [1, 3]
    assert f"Notice: train/a.csv: a column is called {name!r}, which as a setting" in capsys.readouterr().out
    assert csv.read(text, label=2)["<label>"].tolist() == [2, 4]
    assert "Notice" not in capsys.readouterr().out
