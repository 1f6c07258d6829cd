"""Wording: numbers, sizes, names and other values as the log and the failures show them."""

from __future__ import annotations

import re

KINDS = ("UserError", "PlatformError", "AlgorithmError")
"""The kinds of failures. One of them, and a colon, begins the report of a failure."""

_LOOKALIKE = re.compile(rf"((?:train|validation)-[^\s:]*(?=:(?:[-+.\d]|nan|inf))|{'|'.join(KINDS)}):")

LONGEST_NAME = 60
"""Characters of a column's name that a message shows."""

LONGEST_VALUE = 40
"""Characters of a value in a file that a message shows."""


def readable_bytes(count: int) -> str:
    """Return a number of bytes as a reader wants it: `725 MiB`, `1.4 GiB`."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1000:  # noqa: PLR2004 - at most three digits before the point
            break
        size, unit = size / 1024, larger
    whole = unit == "bytes" or size >= 10  # noqa: PLR2004 - two digits that matter are enough
    return f"{size:.0f} {unit}" if whole else f"{size:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `1,200 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shown_column(position: int, names: tuple[str, ...] | None) -> str:
    """Return a column as messages show it: its index, as the settings count, and its name if it has one."""
    return f"column {position}" if names is None else f"column {position} ({short(names[position])!r})"


def short(name: str) -> str:
    """Return a name so short that a message is not full of it."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def shown_value(text: str) -> str:
    """Return a value of a file in quotes, so short that a message is not full of it."""
    return repr(text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}...")


def printable(text: str) -> str:
    """Return a text that can be written anywhere: line breaks, controls and no Unicode become escapes."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def plain(text: str) -> str:
    """Return a printable text in which nothing passes for the log's own lines that programs read.

    Names and cells come from outside: one that looks like a metric's value, or like the beginning of a
    failure, has its colon escaped.
    """
    return _LOOKALIKE.sub(r"\1\\x3a", printable(text))
