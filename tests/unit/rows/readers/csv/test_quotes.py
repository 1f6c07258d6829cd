"""Quoted fields of CSV that do not end as they should: rows would vanish in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

DOUBLE = (
    'Write "" for a quote inside quotes, as pandas does without escapechar, and nothing between a closing '
    "quote and the delimiter."
)


@pytest.mark.parametrize(
    ("text", "place", "field"),
    [
        ('y,size,a\n1.5,"5\\"",0.1\n2.5,"6\\"",0.3\n', "line 2, column 1 ('size')", '"5\\"",0.1\n2.5,"'),
        ('y,a,size\n1.5,0.1,"a \\"b\\" c"\n2.5,0.3,x\n', "line 2, column 2 ('size')", '"a \\"'),
        ('y,a,size\n1.5,0.1,x\n\n2.5,0.3,"q" \n', "line 4, column 2 ('size')", '"q"'),
        ('y,size,a\r\n1.5,"5"" 6"7",2\r\n', "line 2, column 1 ('size')", '"5"" 6"'),
        ('y;a;size\n1.5;0.1;"5\\""\n2.5;0.3;"6\\""\n', "line 2, column 2 ('size')", '"5\\""\n2.5;0.3;"'),
        ('size,"a\n2",y\n"x"y,1,2\n', "line 3, column 0 ('size')", '"x"'),
    ],
)
def test_a_quote_inside_quotes_must_be_doubled(csv: Data, text: str, place: str, field: str) -> None:
    assert csv.refused(text, drop=("size",), label="y") == (
        f"train/a.csv, {place}: a quoted field goes on behind its closing quote: {field!r}. {DOUBLE}",
    )


def test_a_quote_inside_quotes_must_be_doubled_in_a_header_and_in_text_of_categories(csv: Data) -> None:
    assert csv.refused('y,"si\\"ze",a\n1,2,3\n') == (
        (
            "train/a.csv, line 1, column 1: a quoted field goes on behind its closing quote: '\"si\\\\\"'. "
            f"{DOUBLE}"
        ),
    )
    text = 'y,c,a\n1,"\\"",2\n3,"\\"",4\n'
    assert "line 2, column 1 ('c')" in csv.refused(text, categorical=("c",))[0]


def test_a_quote_inside_quotes_must_be_doubled_in_every_file_and_channel(csv: Data) -> None:
    good, bad = "y,size,a\n1,x,2\n", 'y,size,a\n1,"\\"",2\n3,"\\"",4\n'
    assert csv.refused({"1.csv": good, "2.csv": bad}, drop=("size",))[0].startswith("train/2.csv, line 2, ")
    like = csv.declared(good, drop=("size",))
    refused = csv.refused(bad, name="validation", like=like, drop=("size",))
    assert refused[0].startswith("validation/a.csv, line 2, ")


def test_a_quote_that_is_never_closed_is_refused_where_the_last_column_is_dropped(csv: Data) -> None:
    refused = csv.refused('y,a,size\n1.5,0.1,"5\\""\n2.5,0.3,6\n', drop=("size",))
    assert refused[0].startswith(
        "train/a.csv, line 2, column 2 ('size'): a quoted field begins that is never "
    )


def test_quotes_that_are_doubled_or_stand_in_a_field_without_quotes_mean_themselves(csv: Data) -> None:
    text = 'y,size,a\n1,"5""",2\n3,5" wide,4\n5,"""",6\n7,"a\n""b"" c",8'
    read = csv.read(text, drop=("size",))
    assert read["a"].tolist() == [2, 4, 6, 8]
    assert read["<label>"].tolist() == [1, 3, 5, 7]
