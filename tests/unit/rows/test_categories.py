"""Categories: how they are spelled, and in which order their codes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from smxgb.rows.categories import ordered

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data


def test_whole_numbers_are_spelled_in_one_way_in_csv_and_parquet(csv: Data, parquet: Data) -> None:
    # A missing value that is padded so much makes the block one that is read the careful way.
    for row in ("", "1,3.0,    NA    \n"):
        text = "y,c,x\n1,1,3\n0,1.0,4\n1,-2.00,\n0,3.,5\n1,007.0,3\n0,3.5,4\n1,a.0,2\n0,,2\n" + row
        read = csv.read(text, categorical=("c",))
        found = [None if pd.isna(word) else word for word in read["c"]]
        assert found[:8] == ["1", "1", "-2", "3", "007", "3.5", "a.0", None]
        assert found[8:] == (["3"] if row else [])
    table = pa.table({"y": [1, 0], "c": [1.0, -2.0], "x": [3, 4]})
    assert parquet.read(table, categorical=("c",))["c"].tolist() == ["1", "-2"]


@given(st.lists(st.integers(-(10**30), 10**30) | st.integers(-20, 20), unique=True))
def test_whole_numbers_are_in_their_order(numbers: list[int]) -> None:
    assert ordered(map(str, numbers)) == tuple(map(str, sorted(numbers)))


def test_numbers_may_have_any_length_and_leading_zeros() -> None:
    long = "9" * 5000
    assert ordered([long, "7", f"-{long}", "-1", "007", "0", "10"]) == (
        f"-{long}",
        "-1",
        "0",
        "007",
        "7",
        "10",
        long,
    )


def test_words_are_in_the_order_of_the_alphabet() -> None:
    assert ordered(["10", "9", "a"]) == ("10", "9", "a")
