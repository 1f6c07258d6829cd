"""The cells of a block of CSV as columns of numbers: fast, and with care where the fast way fails."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv

from smxgb.errors import UserError
from smxgb.readers.columns import shown
from smxgb.readers.csv_blocks import Block, lines_before, open_quote
from smxgb.readers.csv_dialect import MISSING, numbered_records
from smxgb.readers.rows import Fault, Part, clean

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.batch import Layout
    from smxgb.job import DataSettings

NULLS = [before + word + after for word in MISSING for before in ("", " ") for after in ("", " ")]
"""The spellings that the fast way knows: padding that is wider goes the careful way."""

SHOWN_VALUE = 40
NOT_A_NUMBER = (
    "is not a number",
    "Numbers, and nothing, NA, NaN, null, None or N/A for a missing value, are read; encode the column as numbers, or "
    "leave it out with drop_columns",
)


@dataclass(frozen=True)
class Cells:
    """Turns blocks of one file into clean rows: the role columns of `layout` first, then `features`.

    The file's data begin at byte `start`; `headless` says that no header was found before them.
    """

    path: Path
    source: str
    delimiter: str
    layout: Layout
    features: tuple[int, ...]
    settings: DataSettings
    start: int
    headless: bool

    @cached_property
    def fields(self) -> list[tuple[int, pa.DataType]]:
        """The positions to parse, in order, with their types."""
        roles = [
            (position, pa.int64() if role == "group" else pa.float32())
            for role, position in self.layout.roles
        ]
        return roles + [(position, pa.float32()) for position in self.features]

    @cached_property
    def _parse(self) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    @cached_property
    def _convert(self) -> csv.ConvertOptions:
        return csv.ConvertOptions(
            column_types={str(index): data_type for index, (_, data_type) in enumerate(self.fields)},
            include_columns=[str(index) for index in range(len(self.fields))],
            null_values=NULLS,
            strings_can_be_null=True,
        )

    @cached_property
    def _names(self) -> list[str]:
        # Fields are named by their order, which is the same in every file, wherever its columns stand.
        names = [f"not parsed {position}" for position in range(self.layout.width)]
        for index, (position, _) in enumerate(self.fields):
            names[position] = str(index)
        return names

    @cached_property
    def _schema(self) -> pa.Schema:
        return pa.schema([(str(index), data_type) for index, (_, data_type) in enumerate(self.fields)])

    def part(self, block: Block) -> Part:
        """Return the block's rows. Raises UserError with every kind of mistake in the block."""
        if block.data.isspace():
            return Part(self._schema.empty_table().to_batches()[0], 0, Counter())
        try:
            table = csv.read_csv(
                pa.BufferReader(block.data),
                csv.ReadOptions(use_threads=False, block_size=len(block.data) + 1, column_names=self._names),
                self._parse,
                self._convert,
            )
        except pa.ArrowInvalid:
            return self._with_care(block)
        roles = tuple(role for role, _ in self.layout.roles)
        part, faults = clean(table.combine_chunks().to_batches()[0], roles, self.settings)
        return self._with_care(block) if faults else part

    def _with_care(self, block: Block) -> Part:
        """Parse a block record by record, and say where its mistakes are."""
        records = list(numbered_records(block.data.decode(errors="replace"), self.delimiter))
        rows = [row for _, row in records if len(row) == self.layout.width]
        lines = [before for before, row in records if len(row) == self.layout.width]
        arrays = []
        faults = []
        for column, (position, data_type) in enumerate(self.fields):
            values, bad = _numbers([row[position].strip() for row in rows], data_type)
            arrays.append(values)
            if bad and column >= len(self.layout.roles):
                faults.append(Fault(column, np.array(bad), *NOT_A_NUMBER))
        data = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        part, more = clean(data, tuple(role for role, _ in self.layout.roles), self.settings)
        uneven = [(before, len(row)) for before, row in records if len(row) != self.layout.width]
        if not faults and not more and not uneven:
            return part
        first_line = lines_before(self.path, block.offset) + 1
        texts = [self._uneven(block, uneven, first_line)] if uneven else []
        for fault in sorted(more + faults, key=lambda fault: fault.rows[0]):
            position = self.fields[fault.column][0]
            texts.append(
                fault.text(
                    self.source,
                    shown(position, self.layout.name(position)),
                    lambda row: f"line {first_line + lines[row]}",
                    lambda row, position=position: _shortened(rows[row][position]),
                )
            )
        raise UserError(*texts)

    def _uneven(self, block: Block, records: list[tuple[int, int]], first_line: int) -> str:
        before, width = records[0]
        quote = open_quote(block.data, self.delimiter)
        if quote >= 0:
            line = first_line + block.data.count(b"\n", 0, quote)
            return f"{self.source}, line {line}: a quoted field that begins here is never closed. Mend the quotes."
        more = (
            f" (so too: {len(records) - 1} more records up to line {first_line + records[-1][0]})"
            if records[1:]
            else ""
        )
        return (
            f"{self.source}, line {first_line + before}: {width} values where the file's first record has "
            f"{self.layout.width}{more}. Every record needs as many values as the first."
        )


def _numbers(cells: list[str], data_type: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Return cells as numbers, and the indices of those that are none (null in the array)."""
    values = pa.array([None if cell in MISSING else cell for cell in cells], pa.string())
    try:
        return values.cast(data_type), []
    except pa.ArrowInvalid:
        pass
    bad = [index for index, value in enumerate(values) if not _castable(value, data_type)]
    kept = values.to_pylist()
    for index in bad:
        kept[index] = None
    return pa.array(kept, pa.string()).cast(data_type), bad


def _castable(value: pa.Scalar, data_type: pa.DataType) -> bool:
    try:
        value.cast(data_type)
    except pa.ArrowInvalid:
        return False
    return True


def _shortened(cell: str) -> str:
    return repr(cell if len(cell) <= SHOWN_VALUE else cell[:SHOWN_VALUE] + "...")
