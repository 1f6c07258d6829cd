"""Blocks of CSV hold whole records, whatever is quoted in them."""

from __future__ import annotations

import io
from csv import reader
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smxgb.job import DataFile
from smxgb.rows.readers.csv.blocks import read_blocks
from smxgb.rows.readers.streams import Stream

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

PIECES = ["a", '"', '""', ",", ";", "\n", "\r\n", '5" pipe', '"two\nlines"', '"a,b"']


def records(text: str, delimiter: str) -> list[list[str]]:
    """Return the records as Python's own parser finds them."""
    return list(reader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("delimiter", [",", ";"])
@given(text=st.lists(st.sampled_from(PIECES), max_size=40).map("".join), size=st.integers(1, 12))
@example(text='5" pipe,"two\nlines",6" pipe\n' * 3, size=12)
@example(text='"two\nlines","three\nlines",1\n' * 3, size=5)
@example(text='a"\n"two\nlines', size=3)
def test_a_block_ends_where_a_record_ends(delimiter: str, text: str, size: int) -> None:
    stream = Stream("a.csv", io.BytesIO(text.encode()), DataFile(Path("a.csv"), len(text)))
    blocks = [block.data.decode() for block in read_blocks(stream, delimiter, size)]
    assert "".join(blocks) == text
    read = [record for block in blocks for record in records(block, delimiter)]
    assert [record for record in read if record] == [record for record in records(text, delimiter) if record]


def test_quotes_inside_of_a_cell_cost_no_row(csv: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smxgb.rows.readers.csv.reader.block_size", lambda _: 64)
    text = "".join(f'{row},{row % 7}" pipe,"two\nlines, {row}",{row}\n' for row in range(500))
    expected = pd.read_csv(io.StringIO(text), header=None)
    read = csv.read(text, drop=(1, 2))
    assert read["<label>"].tolist() == expected[0].tolist()
    assert read["f0"].tolist() == expected[3].tolist()
