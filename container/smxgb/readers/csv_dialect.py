"""How a CSV file is written: its delimiter, its header, and whether it is CSV at all."""

from __future__ import annotations

import csv
import io
import logging
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = frozenset({"", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a"})
"""Cells that hold no value; spaces around don't count."""

SAMPLE = 50
"""Records that are looked at to find the delimiter."""

PANDAS_WIDTH = 3
"""From this width on, a first record 0, 1, 2, ... is suspected to be the header that pandas gives to an array."""

_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_LIBSVM = re.compile(r"\S+([ \t]+\d+:\S+)+\s*")
_FOREIGN = {
    b"PAR1": "is a Parquet file: give the channel the content type application/x-parquet",
    b"\x1f\x8b": "is compressed with gzip, which is not read yet: decompress it",
    b"BZh": "is compressed with bzip2, which is not read yet: decompress it",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd, which is not read yet: decompress it",
    b"PK\x03\x04": "is a zip archive or an Excel workbook, which is not read: write it as CSV",
    b"\xff\xfe": "is written in UTF-16: write it in UTF-8",
    b"\xfe\xff": "is written in UTF-16: write it in UTF-8",
}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Head:
    """The beginning of a file: its names, if it has a header, its width, and the byte where its data begin."""

    names: tuple[str, ...] | None
    unnamed: tuple[int, ...]
    width: int
    start: int


def check_text(data: bytes, source: str) -> None:
    """Raise UserError if a file's first bytes are not those of a CSV file."""
    for magic, complaint in _FOREIGN.items():
        if data.startswith(magic):
            raise UserError(f"{source} {complaint}.")
    if b"\0" in data[:4096]:
        raise UserError(f"{source} is not CSV: it holds bytes that are no text.")
    line = data.removeprefix(_BOM).lstrip(b"\r\n")[:1000].split(b"\n", 1)[0].decode(errors="replace")
    if _LIBSVM.fullmatch(line):
        raise UserError(
            f"{source} looks like libsvm, not CSV: its first line is {line[:40]!r}. Give the channel the content type "
            f"text/libsvm."
        )


def find_delimiter(data: bytes) -> str:
    """Return the delimiter of the file that begins with `data`.

    It is a comma if the first data record has one, else the one of tab, semicolon, pipe and space that splits the
    first records into a constant number of cells; else a comma, for a file of one column.
    """
    rows = list(islice(_records(data, ","), SAMPLE))
    if len(rows[1 if len(rows) > 1 else 0]) > 1:
        return ","
    for delimiter in "\t;| ":
        rows = list(islice(_records(data, delimiter), SAMPLE))
        body = rows[1:] or rows
        needed = all if delimiter == " " else any
        constant = len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
        if constant and all(needed(kind(cell) != "text" for cell in row) for row in body):
            return delimiter
    return ","


def read_head(
    data: bytes, delimiter: str, header: Literal["auto", "true", "false"], source: str
) -> Head | None:
    """Return the head of the file that begins with `data`, or None if it has no record.

    Raises UserError for names that are not UTF-8.
    """
    body = data.removeprefix(_BOM)
    body = body.lstrip(b"\r\n")
    skipped = len(data) - len(body)
    rows = list(islice(_records(data, delimiter), 2))
    if not rows:
        return None
    if header == "false" or (header == "auto" and not is_header(rows)):
        _warn_of_counted_names(rows[0], header, source)
        return Head(None, (), len(rows[0]), skipped)
    length = _first_record_bytes(body, delimiter)
    try:
        body[:length].decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source}: the header is not UTF-8 (byte {skipped + error.start}): write the file in UTF-8."
        ) from None
    names = [name.strip() for name in rows[0]]
    unnamed = tuple(index for index, name in enumerate(names) if not name)
    for index in unnamed:
        names[index] = f"Unnamed: {index}"
    return Head(tuple(names), unnamed, len(names), skipped + length)


def is_header(rows: list[list[str]]) -> bool:
    """Tell whether the first of a file's first records is a header.

    It is one if some column has text there and a number in the second record, or, without a second record, if it
    has text and no number.
    """
    first = [kind(cell) for cell in rows[0]]
    if len(rows) == 1:
        return "text" in first and "number" not in first
    return any(name == "text" and kind(cell) == "number" for name, cell in zip(first, rows[1], strict=False))


def kind(cell: str) -> Literal["missing", "number", "text"]:
    """Tell what a cell holds."""
    cell = cell.strip()
    if cell in MISSING:
        return "missing"
    return "number" if _NUMBER.fullmatch(cell) else "text"


def numbered_records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text that are not blank, each with the number of lines before it."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = 0
    for row in rows:
        if row:
            yield before, row
        before = rows.line_num


def _records(data: bytes, delimiter: str) -> Iterator[list[str]]:
    text = data.removeprefix(_BOM).decode(errors="replace")
    return (row for _, row in numbered_records(text, delimiter))


def _first_record_bytes(body: bytes, delimiter: str) -> int:
    lines = io.StringIO(body.decode(errors="surrogateescape"), newline="")
    next(csv.reader(lines, delimiter=delimiter))
    return len(body.decode(errors="surrogateescape")[: lines.tell()].encode(errors="surrogateescape"))


def _warn_of_counted_names(row: list[str], header: str, source: str) -> None:
    if header == "auto" and len(row) >= PANDAS_WIDTH and row == [str(index) for index in range(len(row))]:
        _LOG.warning(
            "%s: the first record is 0, 1, 2, ...: it is read as data; if it is a header, set csv_header=true.",
            source,
        )
