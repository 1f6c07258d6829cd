"""How a CSV file is written: its delimiter, its quotes, and whether it is CSV at all."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.job import BOM, PARQUET_MAGIC
from smxgb.rows.readers.csv.blocks import LONGEST_RECORD, CsvBlock, line_end
from smxgb.rows.readers.csv.quotes import broken_quote
from smxgb.rows.readers.csv.spelling import is_value, kind
from smxgb.wording import short, shown_column, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SAMPLE = 50
"""Records that are looked at to find the delimiter."""

SHOWN_CELLS = 5
"""Cells of a record that a message shows."""

SEPARATOR = re.compile(r"\"?sep=(.)\"?", re.IGNORECASE)
LIBSVM = re.compile(r"\S+([ \t]+\d+:\S+)+\s*")
FOREIGN = {
    PARQUET_MAGIC: "is a Parquet file: give its channel the content type application/x-parquet",
    b"PK\x03\x04": "is a zip archive or an Excel workbook: write it as CSV",
    b"\xff\xfe": "is written in UTF-16: write it in UTF-8",
    b"\xfe\xff": "is written in UTF-16: write it in UTF-8",
}
"""The first bytes of files that are not CSV."""

RULE = re.compile(r"[\s|+:-]*-{3}[\s|+:-]*")
"""The line below the names of a table that was printed, as Markdown and psql do."""

MARKUP = {"JSON": re.compile(r'\s*(\{|\[\s*($|[\[{"\d.-]))'), "HTML or XML": re.compile(r"\s*<[!?\w]")}
"""How text that is not CSV begins."""


def check_text(data: bytes, source: str) -> None:
    """Raise UserError if a file's first bytes are not those of a CSV file."""
    for magic, complaint in FOREIGN.items():
        if data.startswith(magic):
            raise UserError(f"{source} {complaint}.")
    if b"\0" in data[:4096]:
        raise UserError(f"{source} is not CSV: it holds bytes that are not text.")
    lines = data.removeprefix(BOM).lstrip(b"\r\n")[:100_000].split(b"\n", 2)
    line, second = (text[:1000].decode(errors="replace").rstrip("\r") for text in [*lines, b""][:2])
    if mark := SEPARATOR.fullmatch(line):
        shown = "tab" if mark[1] == "\t" else mark[1]
        raise UserError(
            f"{source}, line 1: {line!r} is a line for Excel alone: remove it"
            f"{'' if mark[1] == ',' else f', and set csv_delimiter={shown}'}."
        )
    for name, form in MARKUP.items():
        if form.match(line):
            raise UserError(f"{source} is {name}, not CSV: write its rows as CSV or Parquet.")
    if RULE.fullmatch(second):
        raise UserError(
            f"{source}, line 2: {shown_value(second)} rules off a table for people, as in Markdown: write "
            "its rows as CSV."
        )
    if LIBSVM.fullmatch(line):
        raise UserError(
            f"{source} is libsvm, not CSV (its first line is {line[:40]!r}): give its channel the content "
            "type text/libsvm."
        )


def find_delimiter(data: bytes) -> str:
    """Return the delimiter of the file that begins with `data`.

    It is a comma if the first data record has one, and the header too; else the one of tab, semicolon, pipe
    and space that splits the first records into a constant number of cells with values; else a comma, for a
    file of one column.
    """
    rows = first_records(data, ",", SAMPLE)
    # Below a header without a comma, commas may be those of decimals.
    widths = [len(row) for row in rows[:2]]
    if widths and widths[-1] > 1 and widths[0] > 1:
        return ","
    for delimiter in "\t;| ":
        cells = first_records(data, delimiter, SAMPLE)
        if len({len(row) for row in cells}) != 1 or len(cells[0]) < 2:  # noqa: PLR2004 - nothing is split
            continue
        below = cells[1:] or cells
        if delimiter == " ":
            fits = all(kind(cell) != "text" for row in below for cell in row)
        else:
            fits = all(any(kind(cell) == "missing" or is_value(cell) for cell in row) for row in below)
        if fits:
            return delimiter
    return ","


def check_blanks(data: bytes, delimiter: str, source: str) -> None:
    """Raise UserError if the values are set apart by several blanks, which make empty values between them.

    One record may lack a value between two blanks; where all of them do, columns were aligned.
    """
    rows = first_records(data, " ", SAMPLE)
    aligned = delimiter == " " or (delimiter == "," and not any("," in cell for row in rows for cell in row))
    if aligned and rows and all("" in row and len(row) > row.count("") + 1 for row in rows):
        raise UserError(
            f"{source}: its records hold several blanks in a row, or one at an end, which make empty "
            "values: write one blank, a tab or a comma between two values."
        )


def check_quotes(block: CsvBlock, delimiter: str, source: str, names: tuple[str, ...] | None) -> None:
    """Raise UserError for a quoted field that does not end as it should; the columns have `names`, if any."""
    data = block.data
    broken = broken_quote(data, delimiter)
    if broken is None:
        return
    before = data[: broken.begin].decode(errors="replace")
    *_, (_, record) = numbered_records(f'{before}"', delimiter)
    column = len(record) - 1
    line = (block.line or 0) + data.count(line_end(data), 0, broken.begin) + 1
    place = f"{source}, line {line}, {shown_column(column, names if names and column < len(names) else None)}"
    field = shown_value(data[broken.begin : broken.end].decode(errors="replace"))
    if broken.end is None:
        raise UserError(f"{place}: a quoted field begins that is never closed: {field}. Correct the quotes.")
    raise UserError(
        f'{place}: a quoted field goes on behind its closing quote: {field}. Write "" for a quote inside '
        "quotes, as pandas does without escapechar, and nothing between a closing quote and the delimiter."
    )


def numbered_records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text that are not empty, each with the number of lines before it."""
    csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = 0
    for row in rows:
        if row:
            yield before, row
        before = rows.line_num


def first_records(data: bytes, delimiter: str, count: int) -> list[list[str]]:
    """Return the first records, at most `count`, of the file that begins with `data`."""
    text = data.removeprefix(BOM).decode(errors="replace")
    records = (row for _, row in numbered_records(text, delimiter) if not is_blank_line(row))
    return list(islice(records, count))


def is_blank_line(row: Sequence[str]) -> bool:
    """Tell whether a record is a line of blanks: none in a table of several columns, as for pandas."""
    return len(row) == 1 and bool(row[0]) and not row[0].strip(" ")


def shown_cells(row: Sequence[str]) -> str:
    """Return the first cells of a record as messages show them."""
    cells = [short(cell.strip()) for cell in row[:SHOWN_CELLS]]
    return ", ".join([*cells, "..."] if len(row) > SHOWN_CELLS else cells)
