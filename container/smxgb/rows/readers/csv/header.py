"""The header of a CSV file: whether its first record holds names."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job import BOM
from smxgb.log import log, notice
from smxgb.rows.readers.csv.blocks import CsvBlock, is_blank, line_end
from smxgb.rows.readers.csv.dialect import SAMPLE, check_quotes, first_records, is_blank_line, shown_cells
from smxgb.rows.readers.csv.evidence import NOTHING, WHOLE, Known, Verdict, judged
from smxgb.rows.readers.csv.spelling import kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.rows.readers.csv.evidence import Doubt

DOUBTS: dict[Doubt, str] = {
    "words above values": "is read as a row, and has words above values. If it is a header, set "
    "csv_header=true.",
    "numbers may be names": "is read as a row. If its numbers are names, as pandas writes 0, 1, 2 for a "
    "table without names, remove it, or set csv_header=true.",
    "numbers are names": "is taken for names, for its numbers are unlike those below, as those are that "
    "pandas writes for a table without names. If it is a row, set csv_header=false.",
    "numbers are the names": "is taken for names, for it holds those of the other files in another order. "
    "If it is a row, set csv_header=false.",
    "words are new": "is taken for names, for its words stand nowhere below. If it is a row, set "
    "csv_header=false.",
    "a word is new": "is read as a row, and has a word that stands nowhere below. If it is a header, set "
    "csv_header=true.",
    "a name is a value": "is taken for names, though a word of it stands below in the same column. If it is "
    "a row, set csv_header=false.",
}
"""What is said of a first record that may be the other thing."""


@dataclass(frozen=True)
class Head:
    """The beginning of a file: its names, if it has a header, its width, and where its data begin."""

    names: tuple[str, ...] | None
    width: int
    start: int


def read_head(
    data: bytes,
    delimiter: str,
    header: Literal["auto", "true", "false"],
    source: str,
    *,
    known: Known = NOTHING,
    like: tuple[str, ...] | None = None,
) -> Head | None:
    """Return the head of the file that begins with `data`, or None if it has no record.

    `like` are the names of the files before: a record that holds them, in whatever order, is a header. Raises
    UserError for names that are not UTF-8, and for a header that was asked for where there are numbers.
    """
    rows = first_records(data, delimiter, SAMPLE)
    if not rows or is_blank(data.removeprefix(BOM)):
        return None
    body = data.removeprefix(BOM).lstrip(b"\r\n")
    start = len(data) - len(body)
    length = _first_record_bytes(body, delimiter)
    before = data.count(line_end(data), 0, start)
    check_quotes(CsvBlock(body[:length], start, before), delimiter, source, None)
    _check_comment(rows, source)
    if header == "true":
        _check_names_asked_for(rows[0], source)
    if header == "auto":
        verdict = _judged(rows, known, like)
        if not verdict.is_header:
            _check_two_headers(rows, source)
        if verdict.doubt:
            notice(f"{source}: its first record ({shown_cells(rows[0])}) {DOUBTS[verdict.doubt]}")
    else:
        verdict = Verdict(is_header=header == "true")
    if not verdict.is_header:
        return Head(None, len(rows[0]), start)
    try:
        body[:length].decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source}: the header is not UTF-8 (byte {start + error.start}): write the file in UTF-8."
        ) from None
    return Head(_names(rows[0]), len(rows[0]), start + length)


def _judged(rows: list[list[str]], known: Known, like: tuple[str, ...] | None) -> Verdict:
    names = _names(rows[0])
    if like is None or sorted(names) != sorted(like):
        return judged(rows, known)
    is_doubtful = names != like and all(kind(name) == "number" for name in names)
    return Verdict(is_header=True, doubt="numbers are the names" if is_doubtful else None)


def _names(row: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a header as names: pandas gives one that is empty this name too."""
    names = [name.strip() for name in row]
    for index, name in enumerate(names):
        if not name:
            names[index] = f"Unnamed: {index}"
            while names.count(names[index]) > 1:
                names[index] += ".1"
    return tuple(names)


def _first_record_bytes(body: bytes, delimiter: str) -> int:
    text = body.decode(errors="surrogateescape")
    lines = io.StringIO(text, newline="")
    next(row for row in csv.reader(lines, delimiter=delimiter) if row and not is_blank_line(row))
    return len(text[: lines.tell()].encode(errors="surrogateescape"))


def _check_names_asked_for(row: list[str], source: str) -> None:
    if any(kind(cell) != "number" for cell in row):
        return
    cells = [cell.strip() for cell in row]
    if not all(map(WHOLE.fullmatch, cells)) or len(set(cells)) < len(cells):
        raise UserError(
            f"{source}: csv_header=true, but its first record ({shown_cells(row)}) holds numbers, no names: "
            "leave out csv_header, or write the names."
        )
    log(f"{source}: its first record ({shown_cells(row)}) is taken for names, as csv_header=true says.")


def _check_comment(rows: list[list[str]], source: str) -> None:
    """Raise UserError for a comment: a record that begins with #, and has not as many cells as the next."""
    if rows[0][0].lstrip().startswith("#") and len(rows) > 1 and len(rows[0]) != len(rows[1]):
        raise UserError(
            f"{source}: its first record ({shown_cells(rows[0])}) is a comment, which CSV does not have: "
            "remove it."
        )


def _check_two_headers(rows: list[list[str]], source: str) -> None:
    """Raise UserError where the first two records hold words, and the third numbers."""
    *heads, third = ({kind(cell) for cell in row} for row in rows[:3])
    if heads == [{"text"}, {"text"}] and third <= {"number", "missing"}:
        raise UserError(
            f"{source}: its first two records ({shown_cells(rows[0])}; {shown_cells(rows[1])}) hold words "
            "above numbers: keep one line of names."
        )
