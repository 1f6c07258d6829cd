"""Quotes: where quoted fields of CSV begin and end (RFC 4180, section 2), and those that break the rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

QUOTE = b'"'


@dataclass(frozen=True)
class BrokenQuote:
    """A quoted field, from byte `begin` to byte `end`, that neither a delimiter nor a line end follows.

    `end` is None if the field is never closed.
    """

    begin: int
    end: int | None


def broken_quote(data: bytes, delimiter: str) -> BrokenQuote | None:
    """Return the first quoted field that does not end as it should; a record begins with `data`."""
    if QUOTE not in data:
        return None
    codes = np.frombuffer(data, np.uint8)
    places = quotes_of(data, delimiter)
    opening, closing = places[::2], places[1::2]
    after = codes[np.minimum(closing + 1, len(codes) - 1)]
    ends_field = _borders(delimiter)
    ends_field[ord(QUOTE)] = True  # the first of two quotes, which mean one
    broken = np.flatnonzero(~ends_field[after] & (closing + 1 < len(codes)))
    if len(broken):
        return BrokenQuote(_begin(places, 2 * int(broken[0])), int(closing[broken[0]]) + 1)
    if len(closing) < len(opening):
        return BrokenQuote(_begin(places, len(places) - 1), None)
    return None


def quotes_of(data: bytes, delimiter: str) -> npt.NDArray[np.int64]:
    """Return the places of the quotes that open and close text, in turn; others mean themselves.

    Two in a row inside a field close and open it.
    """
    codes = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(codes == ord(QUOTE))
    opening, closing = places[::2], places[1::2]
    # If each opens a field, or goes on with one as the second of two, they open and close in turn.
    opens = (opening == 0) | _borders(delimiter)[codes[opening - 1]]
    opens[1:] |= opening[1:] - 1 == closing[: len(opening) - 1]
    if opens.all():
        return places
    fields = list(_quoted_fields(delimiter).finditer(data))
    spans = np.array([(field.start(), field.end() - 1) for field in fields], np.int64).ravel()
    return spans if not fields or fields[-1][1] else spans[:-1]


def _begin(places: npt.NDArray[np.int64], index: int) -> int:
    """Return where the field begins of which the quote with this index opens a part."""
    while index and places[index] - 1 == places[index - 1]:
        index -= 2
    return int(places[index])


def _borders(delimiter: str) -> npt.NDArray[np.bool_]:
    """Return for each byte whether it stands between fields."""
    borders = np.zeros(256, np.bool_)
    borders[list(b"\r\n" + delimiter.encode())] = True
    return borders


def _quoted_fields(delimiter: str) -> re.Pattern[bytes]:
    """Return what matches a quoted field; its group is empty if the quote is never closed."""
    before = b"[\r\n" + re.escape(delimiter).encode() + b"]"
    # It begins with the quote itself, which is then searched for at memory speed.
    return re.compile(rb'"(?:(?<=\A")|(?<=' + before + rb'"))[^"]*+(?:""[^"]*+)*+("?)')
