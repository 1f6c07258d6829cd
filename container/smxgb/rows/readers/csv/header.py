"""The header of a CSV file: whether its first record holds names."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job import BOM
from smxgb.log import log, notice
from smxgb.rows.readers.csv.blocks import CsvBlock, is_blank, line_end
from smxgb.rows.readers.csv.dialect import SAMPLE, check_quotes, first_records, shown_cells
from smxgb.rows.readers.csv.spelling import is_value, kind
from smxgb.rows.row_numbers import counts_on

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTED_NAMES = 4
"""So many names 0, 1, 2, ... are a header of pandas'; fewer may be a row."""

YEARS = range(1800, 2201)

WHOLE = re.compile(r"\d+", re.ASCII)


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
    label: int | None = None,
    like: tuple[str, ...] | None = None,
) -> Head | None:
    """Return the head of the file that begins with `data`, or None if it has no record.

    `label` is the label's index, if it is known without names, `like` the names of the files before. Raises
    UserError for names that are not UTF-8, and for a header that was asked for where there are numbers.
    """
    if is_blank(data.removeprefix(BOM)):
        return None
    rows = first_records(data, delimiter, SAMPLE)
    body = data.removeprefix(BOM).lstrip(b"\r\n")
    start = len(data) - len(body)
    length = _first_record_bytes(body, delimiter)
    before = data.count(line_end(data), 0, start)
    check_quotes(CsvBlock(body[:length], start, before), delimiter, source, None)
    if header == "true":
        _check_names_asked_for(rows[0], source)
    if header == "false" or (header == "auto" and _names(rows[0]) != like and not is_header(rows, label)):
        if header == "auto":
            _notice_what_may_be_names(rows, source)
        return Head(None, len(rows[0]), start)
    if header == "auto" and like is None:
        _notice_what_may_be_values(rows[0], source)
    try:
        body[:length].decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source}: the header is not UTF-8 (byte {start + error.start}): write the file in UTF-8."
        ) from None
    return Head(_names(rows[0]), len(rows[0]), start + length)


def is_header(rows: list[list[str]], label: int | None = None) -> bool:
    """Tell whether the first of a file's first records is a header; `label` is the label's index, if known.

    It is one if some column has text there and a number in the second record, or, without a second record, if
    it has text and no number. A record with a number as its label, or with numbers that can't be names, is
    a row with a bad value: taken for a header, it would be lost. So is one with a single word, unless its
    numbers are names as tables have them: years, or 0, 1, 2, ...

    Without any text, it is one if it counts as the names do that pandas gives a table without names, or if it
    has no name for the column of the index that pandas writes.
    """
    cells = [cell.strip() for cell in rows[0]]
    if _heads_an_index(rows) or _heads_counted_columns(cells, rows[1:]):
        return True
    first = [kind(cell) for cell in cells]
    if label is not None and -len(first) <= label < len(first) and first[label] == "number":
        return False
    numbers = [cell for cell, found in zip(cells, first, strict=True) if found == "number"]
    words = [cell for cell, found in zip(cells, first, strict=True) if found == "text"]
    worded = all(any(letter.isalpha() for letter in word) for word in words)
    if numbers and not (worded and _may_be_names(numbers)):
        return False
    if len(words) == 1 and len(cells) > 1 and not _are_usual_names(numbers):
        return False
    if len(rows) == 1:
        return "text" in first and "number" not in first
    return _has_word_above_value(rows)


def _has_word_above_value(rows: list[list[str]]) -> bool:
    """Tell whether some column has a word in the first record and a value in the second."""
    return any(
        kind(name) == "text" and is_value(cell) and not is_value(name)
        for name, cell in zip(*rows[:2], strict=False)
    )


def counting(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Tell whether a column of the first records counts on from row to row."""
    cells = [row[column].strip() for row in rows if column < len(row)]
    return all(map(WHOLE.fullmatch, cells)) and counts_on([int(cell) for cell in cells])


def _heads_an_index(rows: list[list[str]]) -> bool:
    """Tell whether the first record lacks a name only where the rows below count: pandas' index.

    The names may all be numbers, if a file without header was read with one and saved again.
    """
    first, *others = rows
    if len(first) == 1 or first[0].strip() or any(kind(cell) == "missing" for cell in first[1:]):
        return False
    begins = others and others[0][0].strip() in {"0", "1"}
    return bool(begins or len(others) > 2) and counting(others, 0)  # noqa: PLR2004 - two numbers may chance to


def _heads_counted_columns(cells: Sequence[str], rows: list[list[str]]) -> bool:
    """Tell whether a record is 0, 1, 2, ... or 1, 2, 3, ... above rows that hold other things than such."""
    if len(cells) < COUNTED_NAMES or not _are_counted(cells) or not rows:
        return False
    return any(
        not (WHOLE.fullmatch(cell.strip()) and int(cell) <= len(cells)) for row in rows for cell in row
    )


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
    next(csv.reader(lines, delimiter=delimiter))
    return len(text[: lines.tell()].encode(errors="surrogateescape"))


def _may_be_names(numbers: Sequence[str]) -> bool:
    """Tell whether numbers could be names, as the years of a table are: whole, each once."""
    return all(map(WHOLE.fullmatch, numbers)) and len(set(numbers)) == len(numbers)


def _are_usual_names(numbers: Sequence[str]) -> bool:
    """Tell whether numbers are years, or 0, 1, 2, ..., beside the one word of a record."""
    return bool(numbers) and (all(int(number) in YEARS for number in numbers) or _are_counted(numbers))


def _are_counted(cells: Sequence[str]) -> bool:
    return any(list(cells) == [str(first + index) for index in range(len(cells))] for first in (0, 1))


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


def _notice_what_may_be_names(rows: list[list[str]], source: str) -> None:
    row = rows[0]
    cells = [cell.strip() for cell in row]
    if len(rows) > 1 and _has_word_above_value(rows):
        notice(
            f"{source}: its first record ({shown_cells(row)}) is read as a row, and has words above "
            "values. If "
            "it is a header, set csv_header=true."
        )
    behind_label = len(cells) >= COUNTED_NAMES and WHOLE.fullmatch(cells[0]) and _are_counted(cells[1:])
    if len(cells) >= COUNTED_NAMES - 1 and (_are_counted(cells) or behind_label):
        notice(
            f"{source}: its first record ({shown_cells(row)}) is read as a row. If pandas wrote it as the "
            "names of a table without names, remove it, or set csv_header=true."
        )


def _notice_what_may_be_values(row: list[str], source: str) -> None:
    if any(kind(cell) == "text" for cell in row):
        return
    notice(
        f"{source}: its first record ({shown_cells(row)}) is taken for names, as pandas writes those of a "
        "table without names. If it is a row, set csv_header=false."
    )
