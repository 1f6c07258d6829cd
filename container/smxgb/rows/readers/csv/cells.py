"""The cells of a block of CSV as columns of numbers: fast, and with care where the fast way fails."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from smxgb.errors import UserError
from smxgb.rows.categories import CATEGORY, trimmed
from smxgb.rows.readers.csv.blocks import CsvBlock, is_blank, lines_before
from smxgb.rows.readers.csv.dialect import check_quotes, is_blank_line, numbered_records
from smxgb.rows.readers.csv.spelling import LETTERS, MISSING, TRUTH, USUAL_MISSING, kind, spelling, truths
from smxgb.rows.readers.row_rules import EXACT, ROUNDED, CleanRows, Fault, clean, whole_numbers
from smxgb.rows.row_numbers import COUNT, breaks
from smxgb.wording import shown_column, shown_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.roles import Mask, RoleName
    from smxgb.rows.schema import Layout

PLAIN_NULLS = sorted(USUAL_MISSING)
PADDED_NULLS = [
    f"{before}{word}{after}" for word in PLAIN_NULLS for before in ("", " ") for after in ("", " ")
] + sorted(MISSING - USUAL_MISSING)
"""The spellings of a missing value that the fast way knows: any other goes the careful way."""

WIDE = 1000
"""Columns from which on only the plain spellings are known: Arrow builds 30 KB of tables for each one."""

REPLACED = "\ufffd"
"""What stands where bytes were no UTF-8."""

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)

NOT_A_NUMBER = "is not a number"
NOT_UTF8 = "is not UTF-8"
NEITHER = "is neither T nor F, as the column's first values are"
ONE_SPELLING = "Write truth values in one way: as 1 and 0, True and False, or T and F."
REPEATED = (
    "the header is repeated, as in files that were joined: keep the first one only; for a pipe, set the "
    "channel's RecordWrapperType to RecordIO, or write the files without headers."
)
ENCODE = (
    "A missing value is an empty cell, NA, NaN, null, None or N/A. Encode other text as numbers, name its "
    "column in categorical_columns, or leave it out with drop_columns."
)


@dataclass(frozen=True)
class Cells:
    """Turns the blocks of one file into clean rows: the role columns of `layout`, then its `features`.

    The file's data begin at byte `start`; `headless` says that no header was found before them. `worded` are
    the positions where its first records hold truth values. Messages number records by `word`, and end with
    `cure` for a cell that is not a number.
    """

    path: Path
    source: str
    delimiter: str
    layout: Layout
    features: tuple[int, ...]
    settings: ReadingSettings
    start: int
    headless: bool
    worded: frozenset[int] = frozenset()
    word: str = "line"
    cure: str = ENCODE

    def part(self, block: CsvBlock) -> CleanRows:
        """Return the block's rows. Raises UserError with all mistakes in the block."""
        if is_blank(block.data):
            return CleanRows(pa.RecordBatch.from_pylist([], self._schema), 0, Counter())
        check_quotes(block, self.delimiter, self.source, self.layout.columns)
        try:
            data = self._parsed(block)
        except pa.ArrowInvalid:
            return self._with_care(block)
        data = self._trimmed(data)
        data, uncounted = self._without_row_numbers(data)
        part, faults = clean(data, self._roles, self.settings)
        return self._with_care(block) if faults or uncounted or self._may_be_rounded(data) else part

    def _parsed(self, block: CsvBlock) -> pa.RecordBatch:
        try:
            data = self._parsed_as(block, self._convert_options)
        except pa.ArrowInvalid:
            if "group" not in self._roles:
                raise
            # The groups may be whole numbers that are written as 1.0.
            data = self._parsed_as(block, self._convert_options_of_float_groups)
            group = self._roles.index("group")
            data = data.set_column(group, self._schema.field(group), whole_numbers(data.column(group)))
        for index, spelled in self._words.items():
            values = _truths(data.column(index), spelled)
            data = data.set_column(index, self._schema.field(index), values)
        return data

    def _parsed_as(self, block: CsvBlock, options: csv.ConvertOptions) -> pa.RecordBatch:
        table = csv.read_csv(
            pa.BufferReader(block.data),
            csv.ReadOptions(use_threads=False, block_size=len(block.data) + 1, column_names=self._names),
            self._parse_options,
            options,
        )
        return table.combine_chunks().to_batches()[0]

    @cached_property
    def _fields(self) -> list[tuple[int, pa.DataType]]:
        """The positions to parse, in order, with their types."""
        roles = self.layout.roles
        fields = [(position, self.settings.dtype(role)) for role, position in roles]
        categorical = set(self.layout.categorical)
        fields += [
            (position, CATEGORY if position in categorical else pa.float32()) for position in self.features
        ]
        return fields + [(position, pa.int64()) for position in self.layout.row_numbers]

    @cached_property
    def _words(self) -> dict[int, Mapping[str, float]]:
        """The fields of numbers that the file writes as truth values, and what these are."""
        return {
            index: LETTERS if position in self.layout.letters else TRUTH
            for index, (position, data_type) in enumerate(self._fields)
            if position in {*self.worded, *self.layout.letters} and data_type == pa.float32()
        }

    def _without_row_numbers(self, data: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, Mask]]:
        """Return the rows without the columns that count them, and where each of these does not count."""
        count = len(self.layout.row_numbers)
        if not count:
            return data, {}
        first = data.num_columns - count
        found = {}
        for index in range(first, data.num_columns):
            broken = breaks(data.column(index).fill_null(-1).to_numpy())
            if broken.any():
                found[index] = broken
        return data.select(range(first)), found

    def _may_be_rounded(self, data: pa.RecordBatch) -> bool:
        """Tell whether a label is so large that it may be a whole number of which a float loses digits."""
        if not data.num_rows or "label" not in self._roles or self.settings.coder:
            return False
        labels = data.column(self._roles.index("label")).to_numpy(zero_copy_only=False)
        return bool((np.abs(labels) >= EXACT).any())

    def _trimmed(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the words of categories as the careful way has them, whatever pads them."""
        for index, (_, data_type) in enumerate(self._fields):
            if data_type == CATEGORY:
                data = data.set_column(index, str(index), trimmed(data.column(index), MISSING))
        return data

    @cached_property
    def _roles(self) -> tuple[RoleName, ...]:
        return tuple(role for role, _ in self.layout.roles)

    @cached_property
    def _schema(self) -> pa.Schema:
        # Fields are named by their order, which is the same in every file, wherever its columns stand.
        return pa.schema([(str(index), data_type) for index, (_, data_type) in enumerate(self._fields)])

    @cached_property
    def _names(self) -> list[str]:
        names = [f"not parsed {position}" for position in range(self.layout.width)]
        for index, (position, _) in enumerate(self._fields):
            names[position] = str(index)
        return names

    @cached_property
    def _parse_options(self) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    @cached_property
    def _convert_options(self) -> csv.ConvertOptions:
        return self._options(self._parsed_schema)

    @cached_property
    def _convert_options_of_float_groups(self) -> csv.ConvertOptions:
        group = self._roles.index("group")
        return self._options(self._parsed_schema.set(group, pa.field(str(group), pa.float64())))

    @cached_property
    def _parsed_schema(self) -> pa.Schema:
        schema = self._schema
        for index in self._words:
            schema = schema.set(index, pa.field(str(index), CATEGORY))
        return schema

    def _options(self, schema: pa.Schema) -> csv.ConvertOptions:
        return csv.ConvertOptions(
            column_types=schema,
            include_columns=self._schema.names,
            null_values=PADDED_NULLS if len(self._fields) < WIDE else PLAIN_NULLS,
            strings_can_be_null=True,
        )

    def _with_care(self, block: CsvBlock) -> CleanRows:
        """Parse a block record by record, and say where its mistakes are."""
        read = numbered_records(block.data.decode(errors="replace"), self.delimiter)
        records = [each for each in read if self.layout.width == 1 or not is_blank_line(each[1])]
        whole = [(before, row) for before, row in records if len(row) == self.layout.width]
        uneven = [(before, len(row)) for before, row in records if len(row) != self.layout.width]
        arrays = []
        faults = []
        for column, (position, data_type) in enumerate(self._fields):
            cells = [row[position].strip() for _, row in whole]
            if data_type == CATEGORY:
                values, bad = _words(cells)
                arrays.append(values)
                if bad:
                    faults.append(Fault(column, np.array(bad), NOT_UTF8, "Write the file in UTF-8."))
                continue
            is_lettered = self._words.get(column) is LETTERS
            values, bad = _letters(cells) if is_lettered else _numbers(cells, data_type)
            arrays.append(values)
            if position in self.layout.row_numbers:
                continue
            # Text that is a label or a weight by its place breaks the rules for rows, which say so.
            if bad and column >= len(self._roles):
                what = (NEITHER, ONE_SPELLING) if is_lettered else (NOT_A_NUMBER, self.cure)
                faults.append(Fault(column, np.array(bad), *what))
        data, uncounted = self._without_row_numbers(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        faults += [Fault(column, np.flatnonzero(mask), *COUNT) for column, mask in uncounted.items()]
        if "label" in self._roles and not self.settings.coder:
            column = self._roles.index("label")
            cells = [row[self._fields[column][0]].strip() for _, row in whole]
            rounded = [index for index, cell in enumerate(cells) if _is_rounded(cell)]
            faults += [Fault(column, np.array(rounded), *ROUNDED)] if rounded else []
        part, more = clean(data, self._roles, self.settings)
        faults.extend(more)
        if faults or uneven:
            raise UserError(*self._texts(block, whole, uneven, faults))
        return part

    def _hint(self, block: CsvBlock, fault: Fault, cells: list[str]) -> str:
        first = self.headless and block.offset == self.start and fault.rows[0] == 0
        # If several labels are text, the labels are the mistake and not a missing csv_header.
        alone = fault.column >= len(self._roles) or len(fault.rows) == 1
        if self.settings.header == "auto" and first and alone and kind(cells[0]) == "text":
            return " If the file's first record is a header, set csv_header=true."
        return ""

    def _texts(
        self,
        block: CsvBlock,
        records: list[tuple[int, list[str]]],
        uneven: list[tuple[int, int]],
        faults: list[Fault],
    ) -> list[str]:
        before = lines_before(self.path, block.offset) if block.line is None else block.line
        first = before + 1
        texts = [self._uneven(uneven, first)] if uneven else []
        headers = [index for index, (_, row) in enumerate(records) if self._is_header(row)]
        if headers:
            texts.append(f"{self.source}, {self.word} {first + records[headers[0]][0]}: {REPEATED}")
        faults = [replace(fault, rows=np.setdiff1d(fault.rows, headers)) for fault in faults]
        faults = [fault for fault in faults if len(fault.rows)]
        for fault in sorted(faults, key=lambda fault: (fault.rows[0], fault.column)):
            position = self._fields[fault.column][0]
            cells = [row[position] for _, row in records]
            spelled = spelling(cells[fault.rows[0]])
            texts.append(
                (replace(fault, cure=spelled.advice) if spelled else fault).text(
                    self.source,
                    shown_column(position, self.layout.columns),
                    (self.word, lambda row: first + records[row][0]),
                    lambda row, cells=cells: shown_value(cells[row]) if cells[row].strip() else None,  # type: ignore[misc]
                )
                + self._hint(block, fault, cells)
            )
        return texts

    def _is_header(self, row: list[str]) -> bool:
        return tuple(cell.strip() for cell in row) == self.layout.columns

    def _uneven(self, records: list[tuple[int, int]], first: int) -> str:
        before, width = records[0]
        count = len(records) - 1
        more = f" (and {count} more such records up to {self.word} {first + records[-1][0]})" if count else ""
        return (
            f"{self.source}, {self.word} {first + before}: the record has "
            f"{width} value{'s' if width > 1 else ''}, the file's first one has {self.layout.width}{more}. "
            "Every record needs as many values as the first."
        )


def _words(cells: list[str]) -> tuple[pa.Array, list[int]]:
    """Return cells as categories, and the indices of those that held bytes of another encoding."""
    words = pa.array([None if cell in MISSING else cell for cell in cells], pa.string())
    bad = [index for index, cell in enumerate(cells) if REPLACED in cell]
    return words.dictionary_encode().cast(CATEGORY), bad


def _numbers(cells: list[str], data_type: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Return cells as numbers, and the indices of those that are text (null in the array)."""
    values = [None if cell in MISSING else cell for cell in cells]
    with suppress(pa.ArrowInvalid):
        return _cast(values, data_type), []
    if data_type == pa.float32() and (found := truths(values, TRUTH)):
        return pa.array(found, data_type), []
    bad = [index for index, value in enumerate(values) if not _castable(value, data_type)]
    for index in bad:
        values[index] = None
    return _cast(values, data_type), bad


def _letters(cells: list[str]) -> tuple[pa.Array, list[int]]:
    """Return the letters of truth values as numbers, and the indices of other cells (null in the array)."""
    bad = [index for index, cell in enumerate(cells) if cell not in MISSING and cell not in LETTERS]
    return pa.array([LETTERS.get(cell) for cell in cells], pa.float32()), bad


def _truths(column: pa.DictionaryArray, spelled: Mapping[str, float]) -> pa.Array:
    """Return a column of truth values as numbers. Raises pyarrow.ArrowInvalid if it holds anything else."""
    column = trimmed(column, MISSING)
    words = column.dictionary.to_pylist()
    found = truths(words, spelled)
    if found is None and any(words):
        raise pa.ArrowInvalid
    return pc.take(pa.array(found or [None] * len(words), pa.float32()), column.indices)


def _is_rounded(cell: str) -> bool:
    return WHOLE.fullmatch(cell) is not None and abs(int(cell)) > EXACT


def _castable(value: str | None, data_type: pa.DataType) -> bool:
    try:
        _cast([value], data_type)
    except pa.ArrowInvalid:
        return False
    return True


def _cast(values: list[str | None], data_type: pa.DataType) -> pa.Array:
    texts = pa.array(values, pa.string())
    with suppress(pa.ArrowInvalid):
        return texts.cast(data_type)
    return whole_numbers(texts.cast(pa.float64())) if data_type == pa.int64() else texts.cast(data_type)
