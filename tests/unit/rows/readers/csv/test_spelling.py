"""Values that are no plain numbers: truth values, missing ones, and those that are refused with a cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from smxgb.rows.readers.csv import blocks

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NAN = float("nan")


@pytest.mark.parametrize(
    ("yes", "no"), [("True", "False"), ("TRUE", "FALSE"), ("true", "false"), ("t", "f"), ("T", "F")]
)
def test_truth_values_are_1_and_0_in_labels_and_features(csv: Data, yes: str, no: str) -> None:
    text = "y,a,b\n" + f"{yes},{no},0.5\n{no},,1.5\n{no}, {yes} ,2.5\n" * 3
    read = csv.read(text)
    assert read["<label>"].tolist() == [1, 0, 0] * 3
    np.testing.assert_array_equal(read["a"], [0, NAN, 1] * 3)


def test_truth_values_may_come_late(csv: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 256)
    text = "y,a\n" + "1,\n" * 200 + "0,true\n" * 100
    assert csv.read(text)["a"].tolist()[-100:] == [1] * 100


@pytest.mark.parametrize("other", ["1", "0.5", "yes", "t"])
def test_truth_values_beside_anything_else_are_refused(csv: Data, other: str) -> None:
    assert "' is not a number" in csv.refused(f"y,a\n1,True\n0,{other}\n2,False\n")[0]


@pytest.mark.parametrize("text", ["True,False,1\nFalse,True,0\n", "TRUE,5,3\nFALSE,7,2\n", "t,f,1\nf,t,0\n"])
def test_truth_values_are_no_header(csv: Data, text: str) -> None:
    assert csv.read(text)["<label>"].tolist() == [1, 0]


def test_truth_values_below_words_tell_a_header(csv: Data) -> None:
    assert csv.declared("flag,ok\nTrue,False\n").names == ("ok",)
    assert csv.declared("y,a\nt,f\n").names == ("a",)


@pytest.mark.parametrize(("of_first", "of_second"), [("7", "T"), ("T", "7"), ("t", "0"), ("1", "f")])
def test_letters_are_truth_values_in_every_file_or_in_none(csv: Data, of_first: str, of_second: str) -> None:
    """A column of numbers in one file is no column of letters in another: T would count as 1."""
    files = {
        f"{number}.csv": "y,a\n" + f"1,{cell}\n" * 3 for number, cell in enumerate((of_first, of_second))
    }
    said = "' is not a number" if of_first in "17" else f"'{of_second}' is neither T nor F, as the column's"
    assert said in csv.refused(files)[0]
    like = csv.declared({"a.csv": files["0.csv"]})
    assert said in csv.refused(files["1.csv"], like=like, name="validation")[0]


def test_letters_are_truth_values_in_files_of_another_order(csv: Data) -> None:
    read = csv.read({"1.csv": "y,a,b\n1,T,2\n0,F,3\n", "2.csv": "b,a,y\n4,T,0\n5,,1\n"})
    np.testing.assert_array_equal(read["a"], [1, 0, 1, NAN])


@pytest.mark.parametrize("word", ["<NA>", "#N/A", "\\N", "-", "#NA", "-NaN", "1.#IND", " <NA> "])
def test_what_others_write_for_a_missing_value_is_missing(csv: Data, word: str) -> None:
    read = csv.read(f"y,c,a\n1,{word},{word}\n2,x,3\n", categorical=("c",))
    assert read["c"].isna().tolist() == [True, False]
    assert read["a"].isna().tolist() == [True, False]
    assert "is not a label" in csv.refused(f"y,a\n1,2\n{word},3\n")[0]


COMMA = "Decimal comma: write 1.5, or set csv_delimiter."


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("1,5", COMMA),
        ("-0,25", COMMA),
        (",5", COMMA),
        ("1.234,5", COMMA),
        (
            "1,234",
            (
                "Thousands set apart, or a decimal comma: write 1234 or 1.234, or set csv_delimiter if the "
                "comma is none."
            ),
        ),
        ("1,234,567.8", "Thousands set apart: write 1234.5, or set csv_delimiter if the comma is none."),
        ("1 234 567", "Thousands set apart: write 1234.5, or set csv_delimiter if the comma is none."),
        ("12.5%", "Percentage: write 0.125 for 12.5%."),
        ("12,5 %", "Percentage: write 0.125 for 12.5%."),
        ("$1,200.50", "Currency: write the number alone."),
        ("99 EUR", "Currency: write the number alone."),
        ("€5", "Currency: write the number alone."),
        ("1.5D+03", "Fortran's exponent: write 1.5e3 for 1.5D3."),
        ("1d-3", "Fortran's exponent: write 1.5e3 for 1.5D3."),
        ("(1.5)", "Other minus sign: write -1.5."),
        ("\N{MINUS SIGN}3", "Other minus sign: write -1.5."),
        ("2020-01-31", "Date or time: write it as a number, as seconds since 1970."),
        ("31.12.2020", "Date or time: write it as a number, as seconds since 1970."),
    ],
)
def test_a_value_is_shown_with_its_kind_where_no_cell_is_a_number(csv: Data, cell: str, advice: str) -> None:
    text = f"y;a;b\n{cell};{cell};{cell}\n" * 1 + f"{cell};{cell};{cell}\n"
    label, first, second = csv.refused(text)
    assert label == (
        f"train/a.csv, line 2, column 0 ('y'): {cell!r} is not a label: a finite number is needed (so too "
        f"line 3). {advice}"
    )
    assert first == f"train/a.csv, line 2, column 1 ('a'): {cell!r} is not a number (so too line 3). {advice}"
    assert "column 2 ('b')" in second


def test_semicolons_between_decimal_commas_are_named(csv: Data) -> None:
    (mistake,) = csv.refused("1,5;2,3\n2,5;3,7\n")
    assert mistake.startswith(
        "train/a.csv, line 1, column 1: '5;2' is not a number (so too line 2). Another "
    )


@pytest.mark.parametrize("mark", [";", "|", "\t", ","])
def test_a_line_for_excel_is_refused_with_the_cure(csv: Data, mark: str) -> None:
    cure = "" if mark == "," else f", and set csv_delimiter={'tab' if mark == '\t' else mark}"
    assert csv.refused(f"sep={mark}\ny{mark}a\n1{mark}2\n") == (
        f"train/a.csv, line 1: {f'sep={mark}'!r} is a line for Excel alone: remove it{cure}.",
    )


@pytest.mark.parametrize("label", [2**53 + 2, 9007199254740995, -(2**60), 10**30])
def test_a_label_beyond_what_floats_tell_apart_is_refused(csv: Data, label: int) -> None:
    assert csv.refused(f"y,a\n1,2\n{label},3\n") == (
        (
            f"train/a.csv, line 3, column 0 ('y'): '{label}' is a whole number beyond 2^53, of which 32 "
            "bits hold the first 7 digits. Subtract a base from all labels or divide them, or name "
            "another column with label_column."
        ),
    )
    assert len(csv.read("y,a\n1e30,2\n9007199254740992,3\n")) == 2
