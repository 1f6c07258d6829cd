"""The evidence for a header: whether the first record of a CSV file holds names or values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from smxgb.rows.readers.csv.spelling import is_value, kind
from smxgb.rows.row_numbers import counts_on

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 3
"""So many names in a row show a rule, as 10, 20, 30 do; two may do so by chance."""

COUNTED_NAMES = 4
"""So many names 0, 1, 2, ... are a header of pandas' above whole numbers too; fewer may be a row."""

REPEATING = 10
"""So many words below show that a column has few."""

YEARS = range(1800, 2201)

WHOLE = re.compile(r"\d{1,15}", re.ASCII)
WHOLE_VALUED = re.compile(r"-?\d{1,15}(\.0{1,15})?", re.ASCII)

type Doubt = Literal[
    "words above values",
    "numbers may be names",
    "numbers are names",
    "numbers are the names",
    "a name is a value",
    "words are new",
    "a word is new",
]


@dataclass(frozen=True)
class Known:
    """What is known of a file's columns without its header: the label's index, and names of settings."""

    label: int | None = None
    asked: frozenset[str] = frozenset()


NOTHING = Known()


@dataclass(frozen=True)
class Verdict:
    """Whether the first record is a header, and what may be said against it."""

    is_header: bool
    doubt: Doubt | None = None


@dataclass(frozen=True)
class _Column:
    """The first record's cell in a column, and the cells of the records below it."""

    first: str
    below: tuple[str, ...]

    @property
    def is_word(self) -> bool:
        return kind(self.first) == "text"

    @property
    def is_number(self) -> bool:
        return kind(self.first) == "number"

    @property
    def values(self) -> list[str]:
        return [cell for cell in self.below if kind(cell) != "missing"]

    @property
    def has_word_above_value(self) -> bool:
        return self.is_word and not is_value(self.first) and bool(self.below) and is_value(self.below[0])

    @property
    def recurs(self) -> bool:
        return self.is_word and self.first in self.below

    @property
    def is_new(self) -> bool:
        """Whether a word stands on top that none below is, where these repeat each other."""
        words = [cell for cell in self.values if kind(cell) == "text"]
        are_few = len(words) >= REPEATING and 2 * len({*words}) <= len(words)
        return self.is_word and len(words) == len(self.values) and are_few and not self.recurs

    @property
    def is_unlike(self) -> bool:
        """Whether the number on top is of another sort than those below: a year, or whole above fractions."""
        values = self.values
        whole = [cell for cell in values if WHOLE_VALUED.fullmatch(cell)]
        if _is_year(self.first) and not any(map(_is_year, whole)):
            return True
        return 2 * len(whole) < len(values)

    @property
    def is_only_whole(self) -> bool:
        """Whether the number on top is the only one that is written without a point."""
        return WHOLE.fullmatch(self.first) is not None and not any(map(WHOLE.fullmatch, self.below))


def judged(rows: list[list[str]], known: Known) -> Verdict:
    """Judge the first of a file's first records.

    | what speaks | the first record is |
    |---|---|
    | it holds a name that a setting asks for | a header |
    | it lacks a name only above a column that counts the rows: pandas' index | a header |
    | as many of its words stand below in the same column as stand above values | a row |
    | its numbers are years, count or rise evenly, and are unlike those below in all columns | a header |
    | it has no word, and counts 0, 1, 2, 3 above other things than such | a header |
    | it has no word otherwise | a row |
    | it has a number as its label, or numbers that are not whole or stand twice | a row |
    | it has a single word, beside other numbers than years or 0, 1, 2 | a row |
    | a word stands above a value, or no record follows | a header |
    | it has words only, and each is new above words that repeat | a header |
    | nothing of these | a row |

    A row that is taken for a header would be lost, and a header that is taken for a row is a mistake in the
    label or in a number: so what speaks for a row comes first.
    """
    first = [cell.strip() for cell in rows[0]]
    has_words = any(kind(cell) == "text" for cell in first)
    if known.asked & {*first}:
        return Verdict(is_header=True)
    if _heads_an_index(rows):
        return Verdict(is_header=True, doubt=None if has_words else "numbers are names")
    if has_words:
        return _judged_words(_columns(rows), known.label)
    # Most rows hold a fraction, and are told at once.
    are_whole = all(map(WHOLE_VALUED.fullmatch, first))
    return _judged_numbers(_columns(rows), first) if are_whole else Verdict(is_header=False)


def _judged_words(columns: list[_Column], label: int | None) -> Verdict:
    """Judge a record with words, beside which numbers may stand."""
    words = [column for column in columns if column.is_word]
    numbers = [column for column in columns if column.is_number]
    names = [column.first for column in numbers]
    above = sum(column.has_word_above_value for column in columns)
    recurring = sum(column.recurs for column in columns)
    are_new = 0 if above or recurring else sum(column.is_new for column in columns)
    if are_new == len(columns):
        return Verdict(is_header=True, doubt="words are new")
    are_names = _are_regular(names) and all(column.is_unlike for column in numbers)
    may_be_names = are_names or _may_be_names(columns, words, names, label)
    is_header = above or are_names or not columns[0].below
    if is_header and may_be_names and not (recurring and recurring >= above):
        return Verdict(is_header=True, doubt="a name is a value" if recurring else None)
    if above:
        return Verdict(is_header=False, doubt="words above values")
    if are_new:
        return Verdict(is_header=False, doubt="a word is new")
    may_be = len(names) >= FEWEST and _are_usual(names)
    return Verdict(is_header=False, doubt="numbers may be names" if may_be else None)


def counting(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Tell whether a column of the first records counts on from row to row."""
    cells = [row[column].strip() for row in rows if column < len(row)]
    return all(map(WHOLE.fullmatch, cells)) and counts_on([int(cell) for cell in cells])


def _columns(rows: list[list[str]]) -> list[_Column]:
    """Return the columns of records. One that repeats the first is no evidence: files were joined."""
    first = [cell.strip() for cell in rows[0]]
    below = [cells for row in rows[1:] if (cells := [cell.strip() for cell in row]) != first]
    return [
        _Column(cell, tuple(row[index] for row in below if index < len(row)))
        for index, cell in enumerate(first)
    ]


def _judged_numbers(columns: list[_Column], cells: list[str]) -> Verdict:
    """Judge a record of whole numbers."""
    are_counted = _are_counted(cells)
    if len(cells) >= COUNTED_NAMES and are_counted and _holds_others(columns):
        return Verdict(is_header=True, doubt="numbers are names")
    if len(cells) < FEWEST or not columns[0].below:
        return Verdict(is_header=False)
    unlike = sum(column.is_unlike for column in columns)
    if _are_regular(cells) and unlike == len(cells):
        return Verdict(is_header=True, doubt="numbers are names")
    behind_label = len(cells) >= COUNTED_NAMES and _are_counted(cells[1:])
    are_only_whole = sum(column.is_only_whole for column in columns) > 1 and _are_distinct(cells)
    may_be = are_counted or behind_label or are_only_whole or (unlike and _are_regular(cells))
    return Verdict(is_header=False, doubt="numbers may be names" if may_be else None)


def _may_be_names(
    columns: list[_Column], words: list[_Column], numbers: list[str], label: int | None
) -> bool:
    """Tell whether the words and numbers of a record may be names, whatever stands below."""
    if label is not None and -len(columns) <= label < len(columns) and columns[label].is_number:
        return False
    are_worded = all(any(letter.isalpha() for letter in word.first) for word in words)
    if numbers and not (are_worded and all(map(WHOLE.fullmatch, numbers)) and _are_distinct(numbers)):
        return False
    return len(words) > 1 or len(columns) == 1 or _are_usual(numbers)


def _heads_an_index(rows: list[list[str]]) -> bool:
    """Tell whether the first record lacks a name only where the rows below count: pandas' index.

    The names may all be numbers, if a file without header was read with one and saved again.
    """
    first, *others = rows
    if len(first) == 1 or first[0].strip() or any(kind(cell) == "missing" for cell in first[1:]):
        return False
    begins = others and others[0][0].strip() in {"0", "1"}
    return bool(begins or len(others) >= FEWEST) and counting(others, 0)


def _holds_others(columns: list[_Column]) -> bool:
    """Tell whether columns below 0, 1, 2, ... hold other things than such numbers."""
    cells = (cell for column in columns for cell in column.below)
    return any(not (WHOLE.fullmatch(cell) and int(cell) <= len(columns)) for cell in cells)


def _are_regular(numbers: Sequence[str]) -> bool:
    """Tell whether numbers follow a rule, as names do: years, 0, 1, 2, ..., or 10, 20, 30."""
    if not numbers or not all(map(WHOLE_VALUED.fullmatch, numbers)):
        return False
    whole = [int(float(number)) for number in numbers]
    steps = {after - before for before, after in pairwise(whole)}
    is_even = len(whole) >= FEWEST and len(steps) == 1 and min(steps) > 0
    return _are_usual(numbers) or is_even


def _are_usual(numbers: Sequence[str]) -> bool:
    """Tell whether numbers are years, each once, or 0, 1, 2, ..."""
    are_years = all(map(_is_year, numbers)) and _are_distinct(numbers)
    return bool(numbers) and (are_years or _are_counted(numbers))


def _is_year(cell: str) -> bool:
    return WHOLE_VALUED.fullmatch(cell) is not None and int(float(cell)) in YEARS


def _are_distinct(cells: Sequence[str]) -> bool:
    return all(map(WHOLE_VALUED.fullmatch, cells)) and len({float(cell) for cell in cells}) == len(cells)


def _are_counted(cells: Sequence[str]) -> bool:
    return any(list(cells) == [str(first + index) for index in range(len(cells))] for first in (0, 1))
