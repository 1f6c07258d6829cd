"""Listings: the sizes and names of a channel's files, as `aws s3 ls --recursive` or `find` print them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.job import EXTENSIONS, SUFFIXES, extension, is_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smxgb.job import ContentType

OWN_LINE = re.compile(r"\s*(\d+)\s+(\S.*?)\s*")
AWS_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s+(\d+) (.+?)\s*")
"""A line of `aws s3 ls --recursive`: date, time, bytes, key (the AWS CLI's documentation)."""

SHOWN_MISTAKES = 5
PACKED = 2.3
"""Bytes of text for each byte of a compressed file, as measured with gzip."""


@dataclass(frozen=True)
class Listing:
    """The data files of a listing: their sizes in bytes, in the order of their paths, and their type.

    `text` is the bytes of all files when unpacked, `skipped` the number of files that hold no data.
    """

    sizes: tuple[int, ...]
    content_type: ContentType
    text: float
    skipped: int

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)


def read_listing(lines: Iterable[str], source: str) -> Listing:
    """Return the files of the train channel. A line is `bytes path`, or one of `aws s3 ls --recursive`.

    Raises:
        UserError: With the lines that are neither, or if the files have no type or several types.
    """
    wrong: list[str] = []
    files: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        found = AWS_LINE.fullmatch(line.rstrip("\n")) or OWN_LINE.fullmatch(line.rstrip("\n"))
        if found and found[2] not in files:
            files[found[2]] = int(found[1])
        elif line.strip():
            why = "names a file for the second time" if found else "is not a size in bytes and a path"
            wrong.append(f"{source}, line {number}: {line.strip()[:80]!r} {why}.")
    if wrong:
        more = [f"{len(wrong) - SHOWN_MISTAKES} more lines are wrong."] if len(wrong) > SHOWN_MISTAKES else []
        raise UserError(*wrong[:SHOWN_MISTAKES], *more)
    data = {key: size for key, size in sorted(files.items()) if size and is_data(PurePosixPath(key))}
    if not data:
        raise UserError(
            f"{source} names no data file: write one with `aws s3 ls --recursive`, or with "
            "`find FOLDER -type f -printf '%s %P\\n'`."
        )
    text = sum(text_bytes(PurePosixPath(key), size) for key, size in data.items())
    return Listing(tuple(data.values()), _content_type(data, source), text, len(files) - len(data))


def text_bytes(path: PurePath, size: int) -> float:
    """Return the estimated bytes of a file of `size` bytes when unpacked."""
    return size * PACKED if path.suffix.lower() in SUFFIXES else size


def _content_type(files: Iterable[str], source: str) -> ContentType:
    found: dict[ContentType, str] = {}
    for key in files:
        kind = EXTENSIONS.get(extension(PurePosixPath(key)))
        if kind is None:
            raise UserError(
                f"{source}: {key!r} has no extension that tells its type, as one of "
                f"{', '.join(EXTENSIONS)} does: give it one in the listing."
            )
        found.setdefault(kind, key)
    if len(found) > 1:
        listed = " and ".join(f"{kind} ({key})" for kind, key in found.items())
        raise UserError(f"{source} holds {listed}: a channel's files must all be of one type.")
    [content_type] = found
    return content_type
