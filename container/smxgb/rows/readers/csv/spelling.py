"""Spelling: how values are written: numbers, truth values, missing ones, and others, each with its cure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USUAL_MISSING = frozenset({"", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a"})

MISSING = USUAL_MISSING | frozenset(
    {
        *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("\\N", "-"),
    }
)
"""Cells that hold no value; spaces around don't count. They are those of pandas' `read_csv`, and what
PostgreSQL and MySQL write (\\N), and people (-)."""

TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
"""Truth values as Python, R, Excel and Spark write them."""

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
NAN = re.compile(r"[+-]?nan(\(\w*\))?", re.ASCII | re.IGNORECASE)
"""How C, NumPy and others write NaN; Arrow reads all of these."""


DIGITS = r"(?:\d+\.?\d*|\.\d+)"
CURRENCY = r"(?:[$€£¥₹]|[A-Z]{3})"


@dataclass(frozen=True)
class Spelling:
    """One kind of value: what it looks like, what it is called, and the cure."""

    form: re.Pattern[str]
    name: str
    cure: str

    @property
    def advice(self) -> str:
        """The sentence for the user."""
        return f"{self.name}: {self.cure}."


def _spelling(form: str, name: str, cure: str) -> Spelling:
    return Spelling(re.compile(form), name, cure)


SPELLINGS = (
    _spelling(
        r"[+-]?\d{1,3},\d{3}",
        "Thousands set apart, or a decimal comma",
        "write 1234 or 1.234, or set csv_delimiter if the comma is none",
    ),
    _spelling(
        r"[+-]?\d{1,3}((,\d{3})+(\.\d*)?|(['\u00a0\u202f ]\d{3})+([.,]\d*)?|(\.\d{3}){2,}(,\d*)?)",
        "Thousands set apart",
        "write 1234.5, or set csv_delimiter if the comma is none",
    ),
    _spelling(r"[+-]?(\d[\d.]*)?,\d+(e[+-]?\d+)?", "Decimal comma", "write 1.5, or set csv_delimiter"),
    _spelling(rf"[+-]?{DIGITS}(?:,\d+)?\s*%", "Percentage", "write 0.125 for 12.5%"),
    _spelling(
        rf"[+-]?\s*{CURRENCY}\s*[+-]?[\d.,' ]*\d|[+-]?\d[\d.,' ]*\s*{CURRENCY}",
        "Currency",
        "write the number alone",
    ),
    _spelling(rf"[+-]?{DIGITS}[dD][+-]?\d+", "Fortran's exponent", "write 1.5e3 for 1.5D3"),
    _spelling(rf"\({DIGITS}\)|[\u2212\u2013]{DIGITS}|{DIGITS}-", "Other minus sign", "write -1.5"),
    _spelling(
        rf"[+-]?{DIGITS}(?:,\d+)?([;|\t][+-]?({DIGITS}(?:,\d+)?)?)+",
        "Another delimiter",
        "set csv_delimiter, and write decimals with a point",
    ),
    _spelling(
        r"(\d{4}-\d\d?-\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4})([T ][\d:.,]+(Z|[+-]\d\d:?\d\d)?)?|\d\d?:\d\d(:\d\d)?",
        "Date or time",
        "write it as a number, as seconds since 1970",
    ),
)
"""From the narrowest form to the widest: the first that fits is the kind."""


def kind(cell: str) -> Literal["missing", "number", "text"]:
    """Tell what a cell holds."""
    cell = cell.strip()
    if cell in MISSING or NAN.fullmatch(cell):
        return "missing"
    return "number" if NUMBER.fullmatch(cell) or cell in TRUTH else "text"


def spelling(cell: str) -> Spelling | None:
    """Return the kind of value that a cell holds, None if it is a word or a number."""
    return next((spelled for spelled in SPELLINGS if spelled.form.fullmatch(cell.strip())), None)


LETTERS = {"T": 1.0, "t": 1.0, "F": 0.0, "f": 0.0}
"""Truth values as R and PostgreSQL write them, where a column holds nothing else from its first rows on."""


def truths(words: Sequence[str | None], spelled: Mapping[str, float]) -> list[float | None] | None:
    """Return truth values as 1 and 0, where None is missing; None if there is none, or anything else."""
    held = {word for word in words if word is not None}
    if held and held <= spelled.keys():
        return [None if word is None else spelled[word] for word in words]
    return None


def is_value(cell: str) -> bool:
    """Tell whether a cell holds a value, not a word: a number, however written, or a truth value."""
    cell = cell.strip()
    return kind(cell) == "number" or cell in LETTERS or spelling(cell) is not None
