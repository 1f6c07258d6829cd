"""How a CSV file is written: its delimiter, its header, and whether it is CSV at all."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job import BOM, PARQUET_MAGIC
from smxgb.log import log
from smxgb.rows.readers.csv.blocks import LONGEST_RECORD, CsvBlock, is_blank, line_end
from smxgb.rows.readers.csv.quotes import broken_quote
from smxgb.wording import short, shown_column, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MISSING = frozenset({"", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a"})
"""Cells that hold no value; spaces around don't count."""

SAMPLE = 50
"""Records that are looked at to find the delimiter."""

SHOWN_CELLS = 5
"""Cells of a record that a message shows."""

COUNTED_WIDTH = 3
"""From so many numbers on, 0, 1, 2, ... in a first record may be pandas' names of the columns of an array."""

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"\d+", re.ASCII)
NAN = re.compile(r"[+-]?nan(\(\w*\))?", re.ASCII | re.IGNORECASE)
"""How C, NumPy and others write NaN; Arrow reads all of these."""

LIBSVM = re.compile(r"\S+([ \t]+\d+:\S+)+\s*")
FOREIGN = {
    PARQUET_MAGIC: "is a Parquet file: give its channel the content type application/x-parquet",
    b"PK\x03\x04": "is a zip archive or an Excel workbook: write it as CSV",
    b"\xff\xfe": "is written in UTF-16: write it in UTF-8",
    b"\xfe\xff": "is written in UTF-16: write it in UTF-8",
}
"""The first bytes of files that are not CSV."""

MARKUP = {"JSON": re.compile(r'\s*(\{|\[\s*($|[\[{"\d.-]))'), "HTML or XML": re.compile(r"\s*<[!?\w]")}
"""How text that is not CSV begins."""


@dataclass(frozen=True)
class Head:
    """The beginning of a file: its names, if it has a header, its width, and the byte where its data begin.

    `unnamed` says that the header has no name for the first column.
    """

    names: tuple[str, ...] | None
    width: int
    start: int
    unnamed: bool = False


def check_text(data: bytes, source: str) -> None:
    """Raise UserError if a file's first bytes are not those of a CSV file."""
    for magic, complaint in FOREIGN.items():
        if data.startswith(magic):
            raise UserError(f"{source} {complaint}.")
    if b"\0" in data[:4096]:
        raise UserError(f"{source} is not CSV: it holds bytes that are not text.")
    line = data.removeprefix(BOM).lstrip(b"\r\n")[:1000].split(b"\n", 1)[0].decode(errors="replace")
    for name, form in MARKUP.items():
        if form.match(line):
            raise UserError(f"{source} is {name}, not CSV: write its rows as CSV or Parquet.")
    if LIBSVM.fullmatch(line):
        raise UserError(
            f"{source} is libsvm, not CSV (its first line is {line[:40]!r}): give its channel the content "
            "type text/libsvm."
        )


def find_delimiter(data: bytes) -> str:
    """Return the delimiter of the file that begins with `data`.

    It is a comma if the first data record has one, else the one of tab, semicolon, pipe and space that splits
    the first records into a constant number of cells with numbers; else a comma, for a file of one column.
    """
    rows = _first_records(data, ",", SAMPLE)
    if rows and len(rows[1 if len(rows) > 1 else 0]) > 1:
        return ","
    for delimiter in "\t;| ":
        rows = _first_records(data, delimiter, SAMPLE)
        enough = all if delimiter == " " else any
        if (
            rows
            and len(rows[0]) > 1
            and len({len(row) for row in rows}) == 1
            and all(enough(kind(cell) != "text" for cell in row) for row in rows[1:] or rows)
        ):
            return delimiter
    return ","


def check_blanks(data: bytes, delimiter: str, source: str) -> None:
    """Raise UserError if the values are set apart by several blanks, which make empty values between them.

    One record may lack a value between two blanks; where all of them do, columns were aligned.
    """
    rows = _first_records(data, " ", SAMPLE)
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
        f"{place}: a quoted field goes on behind its closing quote: {field}. Write \"\" for a quote inside "
        "quotes, as pandas does without escapechar, and nothing between a closing quote and the delimiter."
    )


def read_head(
    data: bytes,
    delimiter: str,
    header: Literal["auto", "true", "false"],
    source: str,
    *,
    label: int | None = None,
) -> Head | None:
    """Return the head of the file that begins with `data`, or None if it has no record.

    `label` is the label's index, if it is known without names. Raises UserError for names that are not UTF-8,
    and for a header that was asked for where there are numbers.
    """
    if is_blank(data.removeprefix(BOM)):
        return None
    rows = _first_records(data, delimiter, 2)
    body = data.removeprefix(BOM).lstrip(b"\r\n")
    start = len(data) - len(body)
    length = _first_record_bytes(body, delimiter)
    before = data.count(line_end(data), 0, start)
    check_quotes(CsvBlock(body[:length], start, before), delimiter, source, None)
    if header == "true":
        _check_names_asked_for(rows[0], source)
    if header == "false" or (header == "auto" and not is_header(rows, label)):
        if header == "auto":
            _warn_of_counted_names(rows[0], source)
        return Head(None, len(rows[0]), start)
    try:
        body[:length].decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source}: the header is not UTF-8 (byte {start + error.start}): write the file in UTF-8."
        ) from None
    # pandas gives such a column this name too.
    names = tuple(name.strip() or f"Unnamed: {index}" for index, name in enumerate(rows[0]))
    return Head(names, len(names), start + length, not rows[0][0].strip())


def is_header(rows: list[list[str]], label: int | None = None) -> bool:
    """Tell whether the first of a file's first records is a header; `label` is the label's index, if known.

    It is one if some column has text there and a number in the second record, or, without a second record, if
    it has text and no number. A record with a number as its label, or with numbers that can't be names, is
    a row with a bad value: taken for a header, it would be lost.
    """
    first = [kind(cell) for cell in rows[0]]
    if label is not None and -len(first) <= label < len(first) and first[label] == "number":
        return False
    numbers = [cell.strip() for cell in rows[0] if kind(cell) == "number"]
    worded = all(any(letter.isalpha() for letter in cell) for cell in rows[0] if kind(cell) == "text")
    if numbers and not (worded and _may_be_names(numbers)):
        return False
    if len(rows) == 1:
        return "text" in first and "number" not in first
    return any(name == "text" and kind(cell) == "number" for name, cell in zip(first, rows[1], strict=False))


def kind(cell: str) -> Literal["missing", "number", "text"]:
    """Tell what a cell holds."""
    cell = cell.strip()
    if cell in MISSING or NAN.fullmatch(cell):
        return "missing"
    return "number" if NUMBER.fullmatch(cell) else "text"


def numbered_records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text that are not blank, each with the number of lines before it."""
    csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = 0
    for row in rows:
        if row:
            yield before, row
        before = rows.line_num


def _first_records(data: bytes, delimiter: str, count: int) -> list[list[str]]:
    text = data.removeprefix(BOM).decode(errors="replace")
    return [row for _, row in islice(numbered_records(text, delimiter), count)]


def _first_record_bytes(body: bytes, delimiter: str) -> int:
    text = body.decode(errors="surrogateescape")
    lines = io.StringIO(text, newline="")
    next(csv.reader(lines, delimiter=delimiter))
    return len(text[: lines.tell()].encode(errors="surrogateescape"))


def _may_be_names(numbers: Sequence[str]) -> bool:
    """Tell whether numbers could be names, as the years of a table are: whole, each once."""
    return all(map(WHOLE.fullmatch, numbers)) and len(set(numbers)) == len(numbers)


def _are_counted(cells: Sequence[str]) -> bool:
    return len(cells) >= COUNTED_WIDTH and list(cells) == [str(number) for number in range(len(cells))]


def shown_cells(row: Sequence[str]) -> str:
    """Return the first cells of a record as messages show them."""
    cells = [short(cell.strip()) for cell in row[:SHOWN_CELLS]]
    return ", ".join([*cells, "..."] if len(row) > SHOWN_CELLS else cells)


def _check_names_asked_for(row: list[str], source: str) -> None:
    if any(kind(cell) != "number" for cell in row):
        return
    cells = [cell.strip() for cell in row]
    if not _may_be_names(cells):
        raise UserError(
            f"{source}: csv_header=true, but its first record ({shown_cells(row)}) holds numbers, no names: "
            "leave out csv_header, or write the names."
        )
    log(f"{source}: its first record ({shown_cells(row)}) is taken for names, as csv_header=true says.")


def _warn_of_counted_names(row: list[str], source: str) -> None:
    if _are_counted(row):
        log(f"{source}: its first record 0, 1, 2, ... is read as data; csv_header=true makes it a header.")
