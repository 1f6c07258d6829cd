"""Headers that are hardly told from rows, and the index that pandas saves beside a table."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

Capture = pytest.CaptureFixture[str]
INDEX = (
    "Notice: train/a.csv: {} the rows, as the index of a table that pandas saved does, and is no label "
    "and no "
    "feature: it is left out. Save the table with index=False.\n"
)


def table(rows: int = 6, first: int = 0) -> pd.DataFrame:
    """Return a table with a label `y` and features that are like no row number."""
    numbers = np.random.default_rng(first).normal(size=(rows, 3)).round(3)
    return pd.DataFrame(numbers, columns=["y", "a", "b"], index=range(first, first + rows)).astype(np.float32)


def expected(frame: pd.DataFrame) -> pd.DataFrame:
    label, *features = frame.columns
    read = frame[features].copy()
    read["<label>"] = frame[label]
    return read.reset_index(drop=True)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (table().to_csv(), "column 0 without a name counts"),
        (table().to_csv(index_label="Unnamed: 0"), "column 0 without a name counts"),
        (table(6, 300).to_csv(), "column 0 without a name counts"),
        (table().set_axis(range(1, 7)).to_csv(), "column 0 without a name counts"),
        (table().reset_index(names="Unnamed: 0").to_csv(), "column 0, column 1 without a name count"),
        (
            table().reset_index(names="Unnamed: 0.1").reset_index(names="Unnamed: 0").to_csv(),
            "column 0, column 1, column 2 without a name count",
        ),
        (pd.concat([table(60), table(3)]).to_csv(), "column 0 without a name counts"),
    ],
)
def test_an_index_that_counts_is_left_out_and_said(
    csv: Data, text: str, columns: str, capsys: Capture
) -> None:
    frame = pd.read_csv(io.StringIO(text)).astype(np.float32)
    frame = frame[["y", "a", "b"]]
    assert_frame_equal(csv.read(text), expected(frame))
    assert capsys.readouterr().out.count(INDEX.format(columns)) == 1


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_an_index_is_left_out_where_the_names_are_numbers(csv: Data, rows: int, capsys: Capture) -> None:
    """A file without header was read with one, and saved again with an index."""
    text = "".join([",3,0.53,0.42\n", *(f"{row},{7 + row},0.{row}5,{row}\n" for row in range(rows))])
    read = csv.read(text)
    assert list(read) == ["0.53", "0.42", "<label>"]
    assert read["<label>"].tolist() == list(range(7, 7 + rows))
    said = capsys.readouterr().out
    assert "Notice: train/a.csv: its first record (, 3, 0.53, 0.42) is taken for names" in said
    assert "column 0 without a name counts the rows" in said


def test_an_array_that_pandas_saved_has_neither_its_names_nor_its_index_as_data(csv: Data) -> None:
    frame = pd.DataFrame(table(9).to_numpy())
    read = csv.read(frame.to_csv())
    assert list(read) == ["1", "2", "<label>"]
    assert read["<label>"].tolist() == frame[0].tolist()


def test_the_files_of_a_table_count_on_or_anew(csv: Data) -> None:
    parts = [table(3), table(3, 3), table(2)]
    files = {f"{number}.csv": part.to_csv() for number, part in enumerate(parts)}
    assert_frame_equal(csv.read(files), expected(pd.concat(parts)))
    like = csv.declared(files)
    assert_frame_equal(csv.read(table(4, 50).to_csv(), like=like, name="validation"), expected(table(4, 50)))


COUNT = (
    "does not count on from the row before, as the column without a name does where the file begins. Save "
    "the table without its index (index=False), or leave the column out with drop_columns."
)


@pytest.mark.parametrize("end", ["9,1,2,3\n", "x,1,2,3\n", "2.5,1,2,3\n", "-1,1,2,3\n"])
def test_an_index_that_stops_to_count_is_refused(csv: Data, end: str) -> None:
    text = "".join([",y,a,b\n", *(f"{row},1,0.5,3\n" for row in range(60)), end])
    (mistake,) = csv.refused(text)
    assert mistake.startswith("train/a.csv, line 62, column 0 ('Unnamed: 0'): ")
    assert mistake.endswith(f" {COUNT}")
    assert "column 0 ('Unnamed: 0'): the cell is empty" in csv.refused(text.replace(end, ",1,2,3\n"))[0]


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_first_column_without_a_name_that_does_not_count_is_refused_with_the_cure(
    csv: Data, name: str
) -> None:
    text = table().sample(frac=1, random_state=0).to_csv(index_label=name)
    assert csv.refused(text) == (
        (
            "train/a.csv: the first column has no name, as in a table that pandas saved with its index. "
            "Leave it out with drop_columns=0, or save the table with index=False."
        ),
    )
    assert list(csv.read(text, drop=(0,))) == ["a", "b", "<label>"]


def test_a_label_of_0_and_1_counts_nothing(csv: Data) -> None:
    rows = "".join(f"{row % 2},0.5,{row}.5\n" for row in range(60))
    assert "the first column has no name" in csv.refused(f",a,b\n{rows}")[0]
    late = ",y,a\n" + "".join(f"{row},1,0.5\n" for row in range(60)) + "0,1,2\n1,2,3\n1,3,4\n"
    assert "line 64, column 0 ('Unnamed: 0'): '1' does not count on" in csv.refused(late)[0]


def test_a_setting_that_names_the_first_column_has_its_way(csv: Data) -> None:
    assert csv.read(table().to_csv(), label=0)["<label>"].tolist() == [0, 1, 2, 3, 4, 5]


COUNTED = "0,1,2,3\n", "1,2,3,4\n", "0,1,2,3,4\n"


@pytest.mark.parametrize("names", COUNTED)
@pytest.mark.parametrize("row", ["0.5", "7", "", "100"])
def test_counted_names_above_rows_that_are_not_like_them_are_a_header(
    csv: Data, names: str, row: str, capsys: Capture
) -> None:
    text = names + "".join(",".join([f"{label}", *[row] * names.count(",")]) + "\n" for label in (1, 0, 1))
    read = csv.read(text)
    assert list(read) == [*names.strip().split(",")[1:], "<label>"]
    assert read["<label>"].tolist() == [1, 0, 1]
    assert capsys.readouterr().out.count("is taken for names, for its numbers are unlike those below") == 1


@pytest.mark.parametrize(
    "text", ["0,1,2\n5,6,7\n", "0,0,1,2\n1,0.5,3,4\n", "0,1,2,3\n1,2,3,4\n2,0,1,1\n", "7,1,2,3\n0,0.5,2,4\n"]
)
def test_numbers_that_may_be_names_are_a_row_and_noticed(csv: Data, text: str, capsys: Capture) -> None:
    assert len(csv.read(text)) == text.count("\n")
    said = capsys.readouterr().out
    assert (
        f"Notice: train/a.csv: its first record ({text.splitlines()[0].replace(',', ', ')}) is read as a row."
        in said
    )


def test_counted_names_are_those_of_every_file(csv: Data) -> None:
    read = csv.read({"1.csv": "0,1,2,3\n1,0.5,2,3\n", "2.csv": "0,1,2,3\n1,2,3,0\n"})
    assert read["<label>"].tolist() == [1, 1]
    assert csv.read("0,1,2,3\n1,0.5,2,3\n", header="false")["<label>"].tolist() == [0, 1]


@pytest.mark.parametrize("first", ["bad,3,7,9", "bad,,,", "bad,30,10,20", "oops,3,,9", "x1,8,16,24"])
def test_a_single_word_in_the_first_record_is_a_bad_row(csv: Data, first: str) -> None:
    """Taken for the first of the names, the record would be lost."""
    (mistake,) = csv.refused(f"{first}\n1,2,3,4\n0,5,6,7\n")
    assert mistake.startswith(
        f"train/a.csv, line 1, column 0: '{first.split(',', maxsplit=1)[0]}' is not a label: "
    )
    assert mistake.endswith(" If the file's first record is a header, set csv_header=true.")


@pytest.mark.parametrize("first", ["y,2019,2020,2021", "y,0,1,2", "y,1,2,3", "y,b,7,9"])
def test_a_word_beside_years_or_counted_names_is_a_header(csv: Data, first: str, capsys: Capture) -> None:
    assert list(csv.read(f"{first}\n1,2,3,4\n0,5,6,7\n")) == [*first.split(",")[1:], "<label>"]
    assert "Notice" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("2;label;\\N;NA\n4.9;534;6;true\n", {"drop": (1,)}),
        ("1;f1;2\n-20.9;7.8;3\n", {"categorical": (1,)}),
        ("3,word,4\n1,2,3\n", {"drop": (1,), "label": 0}),
    ],
)
def test_a_row_with_a_word_above_values_that_are_not_read_as_numbers_is_noticed(
    csv: Data, text: str, settings: dict[str, Any], capsys: Capture
) -> None:
    assert len(csv.read(text, **settings)) == 2
    said = capsys.readouterr().out
    assert said.count("is read as a row, and has words above values. If it is a header, set csv_header=") == 1


def test_a_row_with_words_above_words_is_not_noticed(csv: Data, capsys: Capture) -> None:
    assert len(csv.read("1,red,2\n0,blue,3\n", categorical=(1,))) == 2
    assert "Notice" not in capsys.readouterr().out


def rows(*kinds: str, count: int = 60) -> list[str]:
    """Return records whose columns hold words (a|b), whole numbers below one (9), or fractions (F)."""
    random = np.random.default_rng(len(kinds))

    def cell(kind: str, row: int) -> str:
        if kind == "F":
            return f"{random.normal():.3f}"
        return (
            kind.split("|")[row % (kind.count("|") + 1)] if "|" in kind else f"{random.integers(int(kind))}"
        )

    return [",".join(cell(kind, row) for kind in kinds) for row in range(count)]


def lines(*records: str) -> str:
    return "".join(f"{record}\n" for record in records)


@pytest.mark.parametrize(
    ("header", "kinds", "settings"),
    [
        ("country,2019,2020,2021", "fr|de F F F", {"categorical": (0,), "label": -1}),
        ("country,2019,2020,2021", "fr|de F F F", {"categorical": (0,), "label": 1}),
        ("country,2019,2020,2021", "fr|de F F F", {"drop": (0,)}),
        ("country,2019,2020,2021", "fr|de 9 9 9", {"drop": (0,)}),
        ("country,city,2019,2020", "fr|de a|b|c F F", {"categorical": (0, 1), "label": 2}),
        ("country,10,20,30", "fr|de F F F", {"categorical": (0,), "label": 3}),
        ("y,400,410,420", "2 F F F", {}),
        ("id,1,2,3", "u1|u2 F F F", {"drop": ("id",)}),
        ("id,7,4,9", "u1|u2 F F F", {"drop": ("id",), "label": 1}),
        ("1,7,y,9", "9 9 9 9", {"label": "y"}),
    ],
)
def test_a_word_that_is_no_value_beside_numbers_that_are_names_is_a_header(
    csv: Data, header: str, kinds: str, settings: dict[str, Any], capsys: Capture
) -> None:
    text = lines(header, *rows(*kinds.split()))
    read = csv.read(text, **settings)
    assert len(read) == 60
    assert set(read) - {"<label>"} < set(header.split(","))
    assert "its first record" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "header", ["2018,2019,2020,2021", "1990,2000,2010,2020", "0.0,1.0,2.0,3.0", "0,10,20,30", "400,410,420"]
)
def test_numbers_that_rise_evenly_above_fractions_are_a_header_and_noticed(
    csv: Data, header: str, capsys: Capture
) -> None:
    text = lines(header, *rows(*"F" * len(header.split(","))))
    assert list(csv.read(text)) == [*header.split(",")[1:], "<label>"]
    said = capsys.readouterr().out
    assert said.count("is taken for names, for its numbers are unlike those below") == 1
    like = csv.declared({"a.csv": lines(*rows(*"F" * len(header.split(","))))})
    assert "looks like a header, and train has none" in csv.refused(text, like=like, name="validation")[0]


@pytest.mark.parametrize(
    ("first", "kinds"),
    [
        ("3,1,7,2", "F F F F"),
        ("1,50,10,100", "F F F F"),
        ("0,1,2", "2 F F"),
        ("1,0,1,2", "2 F F F"),
    ],
)
def test_whole_numbers_above_fractions_that_follow_no_rule_are_a_row_and_noticed(
    csv: Data, first: str, kinds: str, capsys: Capture
) -> None:
    assert len(csv.read(lines(first, *rows(*kinds.split())))) == 61
    assert capsys.readouterr().out.count("is read as a row. If its numbers are names") == 1


@pytest.mark.parametrize(
    ("first", "kinds", "settings"),
    [
        ("1,2.5,10,20", "2 F 99 99", {}),
        ("0,5,10,15", "2 99 99 99", {}),
        ("3,1,2", "9 9 9", {}),
        ("2019,2020,2021", "2020|2019|2021 2020|2022 2018|2019", {}),
        ("red,2,5", "red|blue 2 9", {"categorical": (0,), "label": 1}),
        ("fr,1,3.5", "fr|de 2 F", {"categorical": (0,), "label": 1}),
        ("fr,2019,1,0", "fr|de 2019|2020 2 2", {"categorical": (0,), "label": 3}),
    ],
)
def test_a_row_like_those_below_is_a_row_without_a_notice(
    csv: Data, first: str, kinds: str, settings: dict[str, Any], capsys: Capture
) -> None:
    assert len(csv.read(lines(first, *rows(*kinds.split())), **settings)) == 61
    assert "Notice" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first", "kinds", "settings"),
    [
        ("unknown,red,small", "F red|blue big|small", {"categorical": (1, 2)}),
        ("yes,red,5", "2 red|blue F", {"categorical": (1,)}),
        ("oops,red", "F blue|red", {"categorical": (1,)}),
    ],
)
def test_a_first_record_whose_words_stand_below_is_a_row_with_a_bad_value(
    csv: Data, first: str, kinds: str, settings: dict[str, Any]
) -> None:
    (mistake,) = csv.refused(lines(first, *rows(*kinds.split())), **settings)
    assert f"line 1, column 0: '{first.split(',', maxsplit=1)[0]}' is not a label: " in mistake
    assert mistake.endswith(" If the file's first record is a header, set csv_header=true.")


def test_a_header_that_shares_a_word_with_the_rows_is_noticed(csv: Data, capsys: Capture) -> None:
    assert list(csv.read(lines("y,a,red", *rows("F", "F", "red|blue")), categorical=(2,)))[:2] == ["a", "red"]
    assert capsys.readouterr().out.count("though a word of it stands below in the same column") == 1


def test_a_header_that_stands_again_below_is_no_value(csv: Data) -> None:
    one = lines("y,a", *rows("F", "F", count=3))
    (mistake,) = csv.refused(one + one)
    assert "line 5" in mistake
    assert "header" in mistake


@pytest.mark.parametrize("order", ["1,0,2,3", "3,2,1,0", "0,1,2,3"])
def test_names_that_are_numbers_are_names_in_any_order(csv: Data, order: str, capsys: Capture) -> None:
    records = [record.split(",") for record in rows("F", "F", "F", "F")]
    places = [int(name) for name in order.split(",")]
    other = lines(order, *(",".join(record[place] for place in places) for record in records))
    first = lines("0,1,2,3", *map(",".join, records))
    read = csv.read({"1.csv": first, "2.csv": other})
    assert_frame_equal(read[60:].reset_index(drop=True), read[:60])
    assert ("in another order" in capsys.readouterr().out) is (order != "0,1,2,3")
    like = csv.declared({"1.csv": first})
    assert_frame_equal(csv.read(other, like=like, name="validation"), read[:60])


def test_names_in_another_order_are_names_where_a_word_is_among_them(csv: Data) -> None:
    read = csv.read({"1.csv": "y,0,1,2\n1,2,3,4\n", "2.csv": "0,1,2,y\n2,3,4,1\n"})
    assert read.drop_duplicates().shape == (1, 4)


@pytest.mark.parametrize("blank", [" \n", "    \n", " \r\n \n"])
def test_a_line_of_blanks_is_no_record_as_for_pandas(csv: Data, blank: str) -> None:
    text = "y,a,b\n1,2,3\n4,5,6\n"
    for place in (0, 6, 12, len(text)):
        mixed = text[:place] + blank + text[place:]
        assert len(pd.read_csv(io.StringIO(mixed))) == 2
        assert_frame_equal(csv.read(mixed), csv.read(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "y,a,b\nm,kg,s\n1,2,3\n",
            "first two records (y, a, b; m, kg, s) hold words above numbers: keep one",
        ),
        ("| y | a |\n|---|---|\n| 1 | 2 |\n", "line 2: '|---|---|' rules off a table for people"),
        (" y | a \n---+---\n 1 | 2 \n", "line 2: '---+---' rules off a table for people"),
        ("# made by x\ny,a,b\n1,2,3\n", "its first record (# made by x) is a comment"),
        ("# made by x, 2020\ny,a,b\n1,2,3\n", "its first record (# made by x, 2020) is a comment"),
    ],
)
def test_what_stands_above_the_rows_and_is_no_header_is_said(csv: Data, text: str, said: str) -> None:
    (mistake,) = csv.refused(text)
    assert said in mistake


def test_a_name_may_begin_with_the_sign_of_a_comment(csv: Data) -> None:
    assert list(csv.read("#y,#a,b\n1,2,3\n4,5,6\n")) == ["#a", "b", "<label>"]


@pytest.mark.parametrize(
    ("header", "kinds"), [("y,colour", "no|yes red|blue"), ("kind,colour", "a|b red|blue|green")]
)
def test_words_alone_that_stand_nowhere_below_are_a_header_and_noticed(
    csv: Data, header: str, kinds: str, capsys: Capture
) -> None:
    declared = csv.declared(lines(header, *rows(*kinds.split())), label=0)
    assert declared.names == (header.split(",")[1],)
    assert capsys.readouterr().out.count("words stand nowhere below") == 1


def test_a_new_word_beside_numbers_is_a_row_and_noticed(csv: Data, capsys: Capture) -> None:
    text = lines("green,1,2.5", *rows("red|blue", "2", "F"))
    assert len(csv.read(text, categorical=(0,), label=1)) == 61
    assert capsys.readouterr().out.count("has a word that stands nowhere below. If it is a header, set") == 1


@pytest.mark.parametrize("first", ["400,405,410", "-1,0,1,2"])
def test_even_steps_above_numbers_some_of_which_are_like_them_are_noticed(
    csv: Data, first: str, capsys: Capture
) -> None:
    kinds = ["F", *["99"] * first.count(",")]
    assert len(csv.read(lines(first, *rows(*kinds)))) == 61
    assert capsys.readouterr().out.count("is read as a row. If its numbers are names") == 1
