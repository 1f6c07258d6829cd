"""Categories: how they are spelled, and in which order their codes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smxgb.rows.categories import CATEGORY, Coding, settled

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data


@pytest.mark.parametrize(
    ("words", "categories"),
    [
        (["3", "1.0", "1", "-2.00", "3."], ("-2", "1", "3")),
        (["1.0", "1", "1.1"], ("1", "1.0", "1.1")),
        (["10.0", "9.0"], ("9", "10")),
        (["TRUE", "false", "True"], ("False", "True")),
        (["true", "false", "maybe"], ("false", "maybe", "true")),
        (["true", "1.0"], ("1.0", "true")),
        ([], ()),
    ],
)
def test_numbers_and_truth_values_are_one_category_each_where_there_is_nothing_else(
    words: list[str], categories: tuple[str, ...]
) -> None:
    assert settled(words) == categories
    coding = Coding(categories)
    assert coding.unseen([*words, "other"]) == {"other"}
    column = pa.chunked_array([pa.array([*words, None, "other"]).dictionary_encode().cast(CATEGORY)])
    assert set(coding.coded(column).to_pylist()) - {None} == set(categories)
    assert coding.coded(column).to_pylist()[len(words) :] == [None, None]


def test_words_of_csv_are_read_as_they_stand(csv: Data, parquet: Data) -> None:
    # A missing value that is padded so much makes the block one that is read the careful way.
    for row in ("", "1,3.0,    NA    \n"):
        read = csv.read("y,c,x\n1,1,3\n0, 1.0 ,4\n1,a.0,2\n0,,2\n" + row, categorical=("c",))
        found = [None if pd.isna(word) else word for word in read["c"]]
        assert found == ["1", "1.0", "a.0", None, *(["3.0"] if row else [])]
    table = pa.table({"y": [1, 0], "c": [1.0, -2.0], "x": [3, 4]})
    assert parquet.read(table, categorical=("c",))["c"].tolist() == ["1", "-2"]


@given(st.lists(st.integers(-(10**30), 10**30) | st.integers(-20, 20), unique=True))
def test_whole_numbers_are_in_their_order(numbers: list[int]) -> None:
    assert settled(map(str, numbers)) == tuple(map(str, sorted(numbers)))


def test_numbers_may_have_any_length_and_leading_zeros() -> None:
    long = "9" * 5000
    assert settled([long, "7", f"-{long}", "-1", "007", "0", "10"]) == (
        f"-{long}",
        "-1",
        "0",
        "007",
        "7",
        "10",
        long,
    )


def test_words_are_in_the_order_of_the_alphabet() -> None:
    assert settled(["10", "9", "a"]) == ("10", "9", "a")
