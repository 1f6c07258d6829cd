"""Wording: numbers, sizes and names as the log and the failures show them."""

from __future__ import annotations

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


def printable(path: str) -> str:
    """Return a path as a text that can be written anywhere: bytes that are no UTF-8 become escapes."""
    return path.encode(errors="backslashreplace").decode()
