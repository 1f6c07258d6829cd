"""CSV channels: what is read, what is refused, and in which words."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from smxgb.errors import UserError
from smxgb.rows.batch import ROWS

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NAN = float("nan")
ENCODE = (
    " A missing value is an empty cell, NA, NaN, null, None or N/A. Encode other text as numbers, name its "
    "column in categorical_columns, or leave it out with drop_columns."
)
LABEL_CURE = (
    " Correct these rows (words as classes: class_labels=auto), leave them out with invalid_label=drop, or "
    "name "
    "another column with label_column."
)
SAME = "Every file of every channel needs the same columns, in any order."


def table(columns: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(columns).astype(np.float32)


def test_a_file_without_header_has_invented_names_and_its_label_first(csv: Data) -> None:
    schema = csv.declared("1,2,3\n0,5,6\n")
    assert schema.names == ("f0", "f1")
    assert schema.invented
    assert_frame_equal(csv.read("1,2,3\n0,5,6\n"), table({"f0": [2, 5], "f1": [3, 6], "<label>": [1, 0]}))


@pytest.mark.parametrize(
    "word", ["", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a", '""', " NA ", "   "]
)
def test_a_cell_without_a_value_is_missing(csv: Data, word: str) -> None:
    read = csv.read(f"1,{word},0\n0,4,5\n")
    assert_frame_equal(read, table({"f0": [NAN, 4], "f1": [0, 5], "<label>": [1, 0]}))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-10", 1e-10),
        ("2.5E+03", 2500),
        ("+4", 4),
        (".5", 0.5),
        ("5.", 5),
        (" -7 ", -7),
        ('"8"', 8),
        ("-0", 0),
    ],
)
def test_numbers_come_in_every_spelling(csv: Data, text: str, number: float) -> None:
    assert csv.read(f"1,{text}\n0,1\n")["f0"].tolist() == [np.float32(number), 1]


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n0,5,6",
        "1,2,3\r\n0,5,6\r\n",
        "1,2,3\r0,5,6\r",
        "\n\n1,2,3\n\n\n0,5,6\n\n",
        "\ufeff1,2,3\n0,5,6\n",
        "1;2;3\n0;5;6\n",
        "1\t2\t3\n0\t5\t6\n",
        "1|2|3\n0|5|6\n",
        "1 2 3\n0 5 6\n",
        '1,"2",3\n0,5,"6"\n',
        "1, 2, 3\n0, 5, 6\n",
    ],
)
def test_line_ends_byte_order_marks_and_delimiters_are_found(csv: Data, text: str) -> None:
    assert_frame_equal(csv.read(text), table({"f0": [2, 5], "f1": [3, 6], "<label>": [1, 0]}))


def test_a_delimiter_can_be_set(csv: Data) -> None:
    assert csv.read("1:2\n0:3\n", delimiter=":")["f0"].tolist() == [2, 3]


def test_a_header_gives_the_names(csv: Data) -> None:
    text = 'label, "a" ,"b, or ""c"""\n1,2,3\n0,5,6\n'
    assert csv.declared(text).names == ('"a"', 'b, or "c"')
    assert len(csv.read(text)) == 2


def test_a_header_may_span_lines(csv: Data) -> None:
    text = 'label,"two\nlines",b\n1,2,3\n0,5,x\n'
    assert csv.declared('label,"two\nlines",b\n1,2,3\n').names == ("two\nlines", "b")
    assert csv.refused(text)[0].startswith("train/a.csv, line 4, column 2 ('b'): 'x' is not a number.")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("y,a\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("y,2\n1,2\n", False),
        ("y,a\n", True),
        ("1,2\n", False),
        ("NA,2\n1,3\n", False),
        ("1,a\n2,b\n", False),
        ("1,?,3.5\n0,2,4\n1,3,2\n", False),
        ("?,1.5,3\n0,2,4\n", False),
        ("?,2,3\n0,2,4\n", False),
        ("y,2,2\n0,2,4\n", False),
        ("1,NAN,3\n-nan,2,4\n", False),
        ("abc,2.5,3\n1,4,5\n", False),
        ("y,2019,2020\n0,2,4\n", True),
        ("y,0,1\n0,2,4\n", True),
    ],
)
def test_a_header_is_text_above_numbers(csv: Data, text: str, *, header: bool) -> None:
    assert csv.declared(text).invented is not header


def test_a_first_record_with_numbers_that_are_no_names_is_a_row(csv: Data) -> None:
    sizes = "y,2.5,4\n0,2,4\n"
    assert csv.refused(sizes) == (
        (
            "train/a.csv, line 1, column 0: 'y' is not a label: a finite number is needed."
            f"{LABEL_CURE} If the file's first record is a header, set csv_header=true."
        ),
    )


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({}, True),
        ({"label": 1}, False),
        ({"label": -2}, False),
        ({"drop": (0,)}, False),
        ({"label": 0}, True),
    ],
)
def test_a_record_with_a_number_as_its_label_is_no_header(
    csv: Data, settings: dict[str, Any], *, header: bool
) -> None:
    assert csv.declared("a,7,b\n1,2,3\n", **settings).invented is not header


def test_a_bad_first_row_of_a_later_file_is_not_lost_as_a_header(csv: Data) -> None:
    rows = "1,2,3\n0,5,6\n"
    for bad in ("1.5,oops,4\n", "1,?,4\n1,2,3\n"):
        assert "line 1, column 1: '" in csv.refused({"a.csv": rows, "b.csv": bad})[0]
    assert csv.refused({"a.csv": rows, "b.csv": "y,a,b\n1,2,3\n"}) == (
        (
            "train/b.csv: its first record (y, a, b) looks like a header, and train/a.csv has none: "
            "correct the record, or write a header into every file or into none."
        ),
    )
    like = csv.declared(rows)
    mistakes = csv.refused({"v.csv": "oops,a,b\n1,2,3\n"}, like=like, name="validation")
    assert mistakes[0].startswith(
        "validation/v.csv: its first record (oops, a, b) looks like a header, and train"
    )


def test_files_of_a_later_channel_stand_by_their_names_beside_one_that_has_none(
    csv: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    like = csv.declared("y,a,b\n1,2,3\n")
    files = {"1.csv": "4,5,6\n", "2.csv": "b,a,y\n9,8,7\n", "3.csv": "1,1,1\n"}
    read = csv.read(files, like=like, name="validation")
    assert_frame_equal(read, table({"a": [5, 8, 1], "b": [6, 9, 1], "<label>": [4, 7, 1]}))
    said = capsys.readouterr().out
    assert said.count("validation/1.csv has no header: its columns are taken in the order of train's.") == 1
    assert "3.csv has no header" not in said


def test_a_header_that_was_asked_for_holds_no_measurements(
    csv: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    assert csv.refused("1,0.5,3\n0,2,4\n", header="true") == (
        (
            "train/a.csv: csv_header=true, but its first record (1, 0.5, 3) holds numbers, no names: "
            "leave out csv_header, or write the names."
        ),
    )
    assert csv.declared("1,5,3\n0,2,4\n", header="true").names == ("5", "3")
    assert (
        "its first record (1, 5, 3) is taken for names, as csv_header=true says." in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "text", ["1  2  3\n0  5  6\n", " 1 2 3\n 0 5 6\n", "1 2 3 \n0 5 6 \n", "1   2\n10  3\n"]
)
@pytest.mark.parametrize("delimiter", ["auto", " "])
def test_several_blanks_between_values_make_no_empty_features(csv: Data, text: str, delimiter: str) -> None:
    assert csv.refused(text, delimiter=delimiter)[0].startswith(
        "train/a.csv: its records hold several blanks in a row, or one at an end, which make empty values"
    )


def test_one_value_between_blanks_may_be_missing(csv: Data) -> None:
    assert csv.read("1  3\n0 5 6\n", delimiter=" ")["f0"].isna().tolist() == [True, False]


def test_a_number_that_is_no_index_names_its_column(csv: Data) -> None:
    text = "x,y,2020\n5,2,1\n6,3,0\n"
    assert csv.read(text, label=2020)["<label>"].tolist() == [1, 0]
    assert csv.read(text, label=1)["<label>"].tolist() == [2, 3]
    assert csv.refused(text, label=2021)[0].startswith(
        "label_column=2021: train/a.csv has 3 columns, so an index"
    )


def test_long_names_are_cut_in_messages(csv: Data) -> None:
    long = "n" * 3000
    assert len(csv.refused(f"y,{long}\n1,x\n0,2\n")[0]) < 300
    assert len(csv.refused(f"y,{long},{long}\n1,2,3\n")[0]) < 200
    assert len(csv.refused(f"y,{long}\n1,2\n", label=long[:-1])[0]) < 300


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1, "b": 2}\n', "JSON"),
        ('[{"a": 1, "b": 2},\n', "JSON"),
        ("[\n  [1, 2],\n", "JSON"),
        ("[[1, 2],\n", "JSON"),
        ("<html>\n", "HTML or XML"),
        ("<?xml version='1.0'?>\n", "HTML or XML"),
    ],
)
def test_json_and_html_are_told_from_csv(csv: Data, text: str, name: str) -> None:
    assert csv.refused(text) == (f"train/a.csv is {name}, not CSV: write its rows as CSV or Parquet.",)
    assert csv.declared("[y],[a]\n1,2\n").names == ("[a]",)


def test_each_file_decides_for_itself_whether_it_has_a_header(csv: Data) -> None:
    read = csv.read({"1.csv": "y,a\n1,2\n", "2.csv": "3,4\n5,6\n", "3.csv": "y,a\n"})
    assert_frame_equal(read, table({"a": [2, 4, 6], "<label>": [1, 3, 5]}))


def test_header_true_makes_numbers_names_and_header_false_makes_text_data(csv: Data) -> None:
    assert csv.declared("0,1,2\n5,6,7\n", header="true").names == ("1", "2")
    mistakes = csv.refused("y,a\n1,2\n", header="false")
    assert mistakes[0] == (
        "train/a.csv, line 1, column 0: 'y' is not a label: a finite number is needed." + LABEL_CURE
    )


def test_columns_have_roles_by_name_or_index_before_dropping(csv: Data) -> None:
    text = "id,a,y,w,b\nx,1,0,2,5\nz,3,1,4,6\n"
    expected = table({"a": [1, 3], "b": [5, 6], "<label>": [0, 1], "<weight>": [2, 4]})
    assert_frame_equal(csv.read(text, label="y", weight="w", drop=("id",)), expected)
    assert_frame_equal(csv.read(text, label=2, weight=-2, drop=(0,)), expected)
    assert_frame_equal(csv.read(text, label="y", weight="w", drop=("id", 0, -5)), expected)


def test_the_label_is_the_first_column_left(csv: Data) -> None:
    read = csv.read("id,w,y,a\n7,2,1,3\n8,2,0,4\n", weight="w", drop=("id",))
    assert_frame_equal(read, table({"a": [3, 4], "<label>": [1, 0], "<weight>": [2, 2]}))


def test_bounds_take_the_place_of_the_label(csv: Data) -> None:
    read = csv.read("lo,up,a\n1,inf,3\n-inf,2,4\n", lower="lo", upper="up")
    assert_frame_equal(read, table({"a": [3, 4], "<lower>": [1, -np.inf], "<upper>": [np.inf, 2]}))


def test_a_group_is_an_integer(csv: Data) -> None:
    big = 2**40 + 1
    read = csv.read(f"y,g,a\n1,{big},3\n0,{big},4\n", group="g")
    assert read["<group>"].tolist() == [big, big]
    assert csv.refused("y,g,a\n1,g1,3\n0,2.5,4\n", group="g") == (
        (
            "train/a.csv, line 2, column 1 ('g'): 'g1' is not a group: an integer is needed (so too line "
            "3). Number the groups."
        ),
    )


def test_csv_weights_take_the_second_column(csv: Data) -> None:
    assert_frame_equal(
        csv.read("1,9,2\n0,8,3\n", csv_weights=True),
        table({"f0": [2, 3], "<label>": [1, 0], "<weight>": [9, 8]}),
    )


@pytest.mark.parametrize(
    ("settings", "weight"),
    [
        ({"drop": ("id",)}, "w"),
        ({"drop": (0, 2)}, "a"),
        ({"label": "id"}, "y"),
        ({"label": "w", "drop": ("a",)}, "b"),
        ({"group": "w", "drop": ("id",)}, "a"),
    ],
)
def test_csv_weights_are_the_column_after_the_label_of_those_that_are_left(
    csv: Data, settings: dict[str, Any], weight: str
) -> None:
    columns = {"id": 1, "y": 2, "w": 3, "a": 4, "b": 5}
    text = ",".join(columns) + "\n" + ",".join(map(str, columns.values())) + "\n"
    assert csv.read(text, csv_weights=True, **settings)["<weight>"].tolist() == [columns[weight]]


def test_csv_weights_need_a_column_after_the_label(csv: Data) -> None:
    assert csv.refused("a,w,y\n1,2,3\n", csv_weights=True, label=-1) == (
        (
            "csv_weights=1 takes the column right after the label for the weights, and the label, column 2 "
            "('y') of train/a.csv, is the last: name the column in weight_column instead."
        ),
    )


@pytest.mark.parametrize("header", ["", "y,w,a,b\n"])
def test_an_unweighted_validation_file_has_one_column_fewer(csv: Data, header: str) -> None:
    train = csv.declared(header + "1,9,2,3\n0,8,4,5\n", csv_weights=True)
    text = header.replace("w,", "") + "1,2,3\n0,4,5\n"
    read = csv.read(text, like=train, name="validation", csv_weights=True)
    assert list(read) == [*(train.names or ()), "<label>"]
    assert read.to_numpy().tolist() == [[2, 3, 1], [4, 5, 0]]


def test_settings_that_fit_no_column_are_all_named(csv: Data) -> None:
    mistakes = csv.refused("y,price\n1,2\n", label="Y", weight="prize", drop=(5, "y"), group="y")
    assert mistakes == (
        "drop_columns=5: train/a.csv has 2 columns, so an index is one of -2 to 1.",
        "label_column=Y: train/a.csv has no column of this name; the nearest is 'y'.",
        "weight_column=prize: train/a.csv has no column of this name; the nearest is 'price'.",
        "drop_columns=y and group_column=y both name column 0 ('y') of train/a.csv: a column has one role.",
    )


def test_a_delimiter_that_decimal_commas_hide_is_named(csv: Data) -> None:
    assert csv.refused("y;a;b\n1,5;2,3;3,1\n2,5;2,4\n", label="y") == (
        (
            "label_column=y: train/a.csv was read with the delimiter ',' and has one column, 'y;a;b': set "
            "csv_delimiter=;, and write decimals with a point."
        ),
    )


def test_a_name_needs_a_header(csv: Data) -> None:
    assert csv.refused("1,2\n", label="y") == (
        (
            "label_column=y: train/a.csv has no header with names. Give the column's index, counted from "
            "0, or set csv_header=true if its first record is a header."
        ),
    )


@pytest.mark.parametrize("text", ["1\n2\n", "1:2\n3:4\n"])
def test_a_file_needs_a_feature(csv: Data, text: str) -> None:
    mistakes = csv.refused(text)
    assert mistakes[0].startswith(
        "train/a.csv has 1 column, which leaves no feature beside the label"
    ) or mistakes[0].startswith("train/a.csv, line 1, column 0: '1:2' is not")


def test_names_that_occur_twice_are_named(csv: Data) -> None:
    assert csv.refused("y,a,a\n1,2,3\n") == (
        "train/a.csv has several columns of the same name: 'a'. Give each a name of its own.",
    )


def test_files_with_another_column_order_are_aligned_by_name(csv: Data) -> None:
    read = csv.read({"1.csv": "y,a,b\n1,2,3\n", "2.csv": "b,y,a\n6,4,5\n"})
    assert_frame_equal(read, table({"a": [2, 5], "b": [3, 6], "<label>": [1, 4]}))


def test_validation_is_aligned_with_train_by_name(csv: Data) -> None:
    train = csv.declared("y,a,b\n1,2,3\n")
    read = csv.read("b,a,y\n3,2,1\n", like=train, name="validation")
    assert_frame_equal(read, table({"a": [2], "b": [3], "<label>": [1]}))


def test_files_with_other_columns_are_refused_with_both_files(csv: Data) -> None:
    assert csv.refused({"1.csv": "y,a,b\n1,2,3\n", "2.csv": "y,a,c,d\n1,2,3,4\n"}) == (
        (
            "train/2.csv lacks column 2 ('b') of train/1.csv and has column 2 ('c'), column 3 ('d'), which "
            f"train/1.csv does not have: it has 4 columns, train/1.csv has 3. {SAME}"
        ),
    )
    assert csv.refused({"1.csv": "1,2,3\n", "2.csv": "1,2\n"}) == (
        "train/2.csv has 2 columns, train/1.csv has 3: every file of every channel needs the same columns.",
    )


def test_validation_with_other_columns_than_train_is_refused(csv: Data) -> None:
    train = csv.declared("y,a,b\n1,2,3\n")
    assert csv.refused("a,b\n1,2\n", like=train, name="validation") == (
        f"validation/a.csv lacks column 0 ('y') of train: it has 2 columns, train has 3. {SAME}",
    )


def test_text_names_file_line_column_and_value(csv: Data) -> None:
    text = "y,size,colour\n1,2,3\n\n0,4,red\n" + "1,2,3\n" * 5 + "0,small,blue\n" + "1,2,green\n" * 9
    assert csv.refused({"deep/a.csv": text}) == (
        "train/deep/a.csv, line 4, column 2 ('colour'): 'red' is not a number (so too lines 10, 11, 12, "
        "13, 14 and "
        "5 more up to 19)." + ENCODE,
        "train/deep/a.csv, line 10, column 1 ('size'): 'small' is not a number." + ENCODE,
    )


def test_long_values_are_shortened_and_quoted_line_ends_counted(csv: Data) -> None:
    text = '1,"2\n",3\n0,5,"' + "x" * 300 + '"\n'
    assert csv.refused(text) == (
        "train/a.csv, line 3, column 2: '" + "x" * 40 + "...' is not a number." + ENCODE,
    )


def test_text_in_the_first_record_may_be_a_header(csv: Data) -> None:
    assert csv.refused("1,a\n2,b\n")[0].endswith(
        ENCODE + " If the file's first record is a header, set csv_header=true."
    )


def test_dropped_columns_may_hold_anything(csv: Data) -> None:
    text = b'y,note,a\n1,"a, ""b""\n\xff\xfe",3\n0,5" pipe,4\n'
    assert_frame_equal(csv.read(text, drop=("note",)), table({"a": [3, 4], "<label>": [1, 0]}))


@pytest.mark.parametrize("record", ["0,1", "0,1,2,3", "7"])
def test_a_record_of_another_length_is_refused(csv: Data, record: str) -> None:
    width = len(record.split(","))
    plural = "s" if width > 1 else ""
    assert csv.refused(f"1,2,3\n{record}\n4,5,6\n{record}\n") == (
        (
            f"train/a.csv, line 2: the record has {width} value{plural}, the file's first one has 3 (and 1 "
            "more such records up to line 4). Every record needs as many values as the first."
        ),
    )


def test_a_quote_that_is_never_closed_is_refused(csv: Data) -> None:
    assert csv.refused('1,2,3\n0,"5,6\n1,2,3\n') == (
        (
            "train/a.csv, line 2, column 1: a quoted field begins that is never closed: '\"5,6\\n1,2,3\\n'. "
            "Correct the quotes."
        ),
    )


@pytest.mark.parametrize("label", ["", "NaN", "inf", "1e400", "yes"])
def test_what_is_no_label_is_refused_or_dropped(csv: Data, label: str) -> None:
    text = f"1,2\n{label},3\n0,4\n{label},5\n"
    said = f"{label!r} is not a label" if label else "the label is empty"
    assert csv.refused(text) == (
        f"train/a.csv, line 2, column 0: {said}: a finite number is needed (so too line 4)." + LABEL_CURE,
    )
    assert_frame_equal(csv.read(text, invalid_label="drop"), table({"f0": [2, 4], "<label>": [1, 0]}))


def test_rows_that_are_dropped_are_counted_and_may_hold_other_mistakes(csv: Data) -> None:
    reader = csv.reader("y,w,a\n,-1,inf\n1,1,2\n,2,3\n", weight="w", invalid_label="drop")
    (batch,) = reader.batches()
    assert (batch.rows, batch.dropped) == (1, 2)


def test_a_channel_of_which_every_row_is_dropped_has_one_empty_batch(csv: Data) -> None:
    reader = csv.reader(",1\n,2\n", invalid_label="drop")
    (batch,) = reader.batches()
    assert (batch.rows, batch.dropped, batch.features.num_columns) == (0, 2, 1)


@pytest.mark.parametrize("weight", ["-1", "", "inf", "heavy"])
def test_what_is_no_weight_is_refused(csv: Data, weight: str) -> None:
    said = f"{weight!r} is not a weight" if weight else "the weight is empty"
    assert csv.refused(f"1,1,2\n0,{weight},3\n", csv_weights=True) == (
        (
            f"train/a.csv, line 2, column 1: {said}: a finite number, 0 or more, is needed. Correct these "
            "rows."
        ),
    )


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e400", "4e38"])
def test_an_infinite_feature_is_refused_or_missing(
    csv: Data, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"y,a,b\n1,2,3\n0,{value},4\n1,3e38,3e38\n"
    assert csv.refused(text) == (
        (
            f"train/a.csv, line 3, column 1 ('a'): {value!r} is infinite, or beyond a 32-bit float "
            "(3.4e38). Correct the values, or let them count as missing with infinity=missing."
        ),
    )
    read = csv.read(text, infinity="missing")
    assert_frame_equal(read, table({"a": [2, NAN, 3e38], "b": [3, 4, 3e38], "<label>": [1, 0, 1]}))
    assert "Channel train: 1 infinite values count as missing: column 1 ('a') 1." in capsys.readouterr().out


def test_all_mistakes_of_a_block_are_reported(csv: Data) -> None:
    mistakes = csv.refused("y,a,b\nx,1,2\n1,red,3\n0,1\n1,2,inf\n")
    assert [text.split(":")[0] for text in mistakes] == [
        "train/a.csv, line 4",
        "train/a.csv, line 2, column 0 ('y')",
        "train/a.csv, line 3, column 1 ('a')",
        "train/a.csv, line 5, column 2 ('b')",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"PAR1....", "is a Parquet file: give its channel the content type application/x-parquet."),
        (b"PK\x03\x04...", "is a zip archive or an Excel workbook: write it as CSV."),
        ("1,2\n".encode("utf-16"), "is written in UTF-16: write it in UTF-8."),
        (b"\0\0,2\n", "is not CSV: it holds bytes that are not text."),
        (
            b"1 1:0.5 2:1\n",
            (
                "is libsvm, not CSV (its first line is '1 1:0.5 2:1'): give its channel the content type "
                "text/libsvm."
            ),
        ),
        (b"y,pr\xe9x\n1,2\n", ": the header is not UTF-8 (byte 4): write the file in UTF-8."),
    ],
)
def test_what_is_no_csv_is_refused_in_one_sentence(csv: Data, content: bytes, complaint: str) -> None:
    expected = (f"train/2.csv {complaint}".replace(" :", ":"),)
    assert csv.refused({"1.csv": "1,2\n", "2.csv": content}) == expected
    assert csv.refused({"2.csv": content}) == expected


@pytest.mark.parametrize(
    "files", [{"1.csv": "\n\n", "2.csv": "1,2\n"}, {"1.csv": "y,a\n", "2.csv": "y,a\n1,2\n"}]
)
def test_files_without_a_record_are_passed_over(csv: Data, files: dict[str, str]) -> None:
    assert csv.read(files).to_numpy().tolist() == [[2, 1]]


def test_a_channel_without_a_record_is_refused(csv: Data) -> None:
    assert csv.refused("\n\r\n") == ("channel train: none of its files holds a record.",)


def test_a_file_of_blanks_has_no_record_and_decides_nothing(csv: Data) -> None:
    read = csv.read({"1": "  \n", "2": "y,a,b\n1,2,3\n", "3": " \r\n\r\n ", "4": "\ufeff"})
    assert_frame_equal(read, table({"a": [2], "b": [3], "<label>": [1]}))


def test_rows_without_any_value_are_rows(csv: Data) -> None:
    assert csv.refused({"1": "1\t2\n", "2": "\t\n\t\n"})[0].startswith(
        "train/2, line 1, column 0: the label is empty: a finite number is needed (so too line 2)."
    )


def test_a_header_that_is_repeated_is_told_from_a_bad_row(csv: Data) -> None:
    again = (
        "train/a.csv, line 3: the header is repeated, as in files that were joined: keep the first one only; "
        "for a pipe, set the channel's RecordWrapperType to RecordIO, or write the files without headers."
    )
    assert csv.refused("y,a,b\n1,2,3\ny, a,b\n1,4,5\ny,a,b\n") == (again,)
    mistakes = csv.refused("y,a,b\n1,2,3\ny,a,b\n1,x,5\n")
    assert mistakes == (again, f"train/a.csv, line 4, column 1 ('a'): 'x' is not a number.{ENCODE}")


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_keep_their_order_over_blocks_files_and_batches(csv: Data, threads: int) -> None:
    csv.threads = threads
    rows = 3 * ROWS + 17
    lines = [f"{row},{row / 8},{-row}.25\n" for row in range(rows)]
    files = {
        "1.csv": "".join(lines[:50]),
        "2.csv": "".join(lines[50:100_000]),
        "3.csv": "".join(lines[100_000:]),
    }
    reader = csv.reader(files)
    batches = list(reader.batches())
    assert [batch.rows for batch in batches] == [ROWS, ROWS, ROWS, 17]
    assert reader.expected_rows == pytest.approx(rows, rel=0.8)
    assert np.array_equal(
        np.concatenate([batch.roles["label"] for batch in batches]), np.arange(rows, dtype=np.float32)
    )
    first = np.concatenate([batch.features.column(0).to_numpy() for batch in batches])
    assert np.array_equal(first, (np.arange(rows) / 8).astype(np.float32))


def test_rows_are_counted_by_rows_where_the_header_fills_a_block(csv: Data) -> None:
    width = 60_000
    header = ",".join(["y", *(f"feature_name_{column:06}" for column in range(width))])
    rows = [",".join([str(row % 2), *(f"{row}.0123456789012345" for _ in range(width))]) for row in range(5)]
    reader = csv.reader("\n".join([header, *rows]) + "\n")
    assert len(reader.declared.names or ()) == width
    assert reader.expected_rows == pytest.approx(5, abs=2)
    assert sum(batch.rows for batch in reader.batches()) == 5


def test_rows_are_counted_by_the_first_file_that_has_some(csv: Data) -> None:
    rows = "".join(f"{row % 2},{row}.25\n" for row in range(5000))
    files = {"1.csv": "y,a\n", "2.csv": "\n", "3.csv": f"y,a\n{rows}", "4.csv": "y,a\n"}
    reader = csv.reader(files)
    assert reader.declared.names == ("a",)
    assert reader.expected_rows == pytest.approx(5000, rel=0.3)
    assert sum(batch.rows for batch in reader.batches()) == 5000


def test_a_header_alone_is_no_row(csv: Data) -> None:
    reader = csv.reader({"1.csv": "y,a\n", "2.csv": "y,a\n"})
    assert reader.declared.names == ("a",)
    assert reader.expected_rows == 0
    assert list(reader.batches()) == []


def test_the_line_of_a_late_mistake_is_right(csv: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smxgb.rows.readers.csv.reader.block_size", lambda _: 64)
    text = "y,note,a\n" + '1,"two\nlines",2\n\n' * 1000 + "0,x,bad\n"
    assert csv.refused(text, drop=("note",))[0].startswith("train/a.csv, line 3002, column 2 ('a'): 'bad' is")


def test_a_wide_table_is_read_in_batches_of_few_rows(csv: Data) -> None:
    frame = pd.DataFrame(np.arange(500 * 10_000).reshape(500, 10_000) % 10)
    reader = csv.reader(frame.to_csv(header=False, index=False))
    batches = list(reader.batches())
    assert max(batch.rows for batch in batches) == 419
    read = np.concatenate([np.column_stack(batch.features.columns[:9]) for batch in batches])
    assert np.array_equal(read, frame.iloc[:, 1:10])


CELL = st.one_of(st.floats(width=32, allow_infinity=False), st.integers(-(10**6), 10**6))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    data=st.data(), width=st.integers(2, 5), header=st.booleans(), size=st.sampled_from([16, 100, 1 << 20])
)
def test_what_pandas_writes_comes_back(
    csv: Data, data: st.DataObject, width: int, size: int, *, header: bool
) -> None:
    rows = data.draw(
        st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=2, max_size=40), label="rows"
    )
    frame = pd.DataFrame(rows, columns=[f"c{index}" for index in range(width)], dtype=np.float32)
    frame["c0"] = frame["c0"].fillna(0)
    style = {
        "sep": data.draw(st.sampled_from(",;\t|")),
        "lineterminator": data.draw(st.sampled_from(["\n", "\r\n"])),
        "na_rep": data.draw(st.sampled_from(["", "NA", "nan"])),
        "quoting": data.draw(st.sampled_from([0, 1])),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smxgb.rows.readers.csv.reader.block_size", lambda _: size)
        read = csv.read(frame.to_csv(index=False, header=header, **style), header=str(header).lower())
    assert np.array_equal(read["<label>"], frame["c0"])
    assert np.array_equal(read.iloc[:, :-1].to_numpy(), frame.iloc[:, 1:].to_numpy(), equal_nan=True)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.one_of(
        st.binary(min_size=1, max_size=300),
        st.text('0123456789.,;"\r\n\t |eENAninf-', min_size=1, max_size=200).map(str.encode),
    ),
    invalid_label=st.sampled_from(["error", "drop"]),
)
def test_any_bytes_are_read_or_refused(csv: Data, text: bytes, invalid_label: str) -> None:
    with suppress(UserError):
        read = csv.read(text, invalid_label=invalid_label)
        assert np.isfinite(read.get("<label>", 0.0)).all()  # no row, no column


def test_a_plain_file_reads_as_pandas_reads_it(csv: Data) -> None:
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        generator.normal(size=(20_000, 6)) * 10.0 ** generator.integers(-30, 30, (20_000, 6))
    )
    text = frame.to_csv(index=False, header=False)
    expected = pd.read_csv(io.StringIO(text), header=None).astype(np.float32)
    read = csv.read(text)
    assert np.array_equal(read.iloc[:, :-1], expected.iloc[:, 1:])


def test_groups_may_be_whole_floats(csv: Data) -> None:
    read = csv.read("1,0.0,5\n0,0.0,6\n1,1e1,7\n", group=1)
    assert read["<group>"].tolist() == [0, 0, 10]
    exact = csv.read("1,9007199254740993,5\n0,9007199254740992,6\n", group=1)
    assert exact["<group>"].tolist() == [9007199254740993, 9007199254740992]
    for bad in ("1.5", "NA", "9007199254740993.0", "inf", "x"):
        mistakes = csv.refused(f"1,0.0,5\n0,{bad},6\n", group=1)
        assert mistakes == (
            (
                f"train/a.csv, line 2, column 1: '{bad}' is not a group: an integer is needed. Number the "
                "groups."
            ),
        )


def test_bounds_are_not_negative(csv: Data) -> None:
    assert csv.refused("0,2,3\n-1,2,3\n", lower=0, upper=1)[0].startswith(
        "train/a.csv, line 2, column 0: '-1' is not a lower bound: a number, 0 or more, or -inf is needed."
    )


@pytest.mark.parametrize(
    ("text", "settings", "line"),
    [
        (
            "age,income,churn\n1,2,0\n",
            {},
            "Label: 'age' (column 0, the first one). Features: income, churn (2).",
        ),
        (
            "1,2,0,5\n",
            {"label": -2, "weight": 0},
            "Label: column 2. Weights: column 0. Features: 2.",
        ),
        (
            "1,2,0,5\n",
            {"csv_weights": True},
            "Label: column 0, the first one. Weights: column 1. Features: 2.",
        ),
    ],
)
def test_the_log_says_which_column_is_the_label(
    csv: Data, capsys: pytest.CaptureFixture[str], text: str, settings: dict[str, Any], line: str
) -> None:
    csv.declared(text, **settings)
    said = capsys.readouterr().out
    assert f"\n{line}\n" in f"\n{said}", said
