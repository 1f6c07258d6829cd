"""Content types: the table of formats, and how files show which they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job.compression import SUFFIXES, decompressed, read_fully

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

type ContentType = Literal["csv", "libsvm", "parquet", "recordio-protobuf"]

PARQUET_MAGIC = b"PAR1"
RECORDIO_MAGIC = bytes.fromhex("0a23d7ce")
BOM = b"\xef\xbb\xbf"
"""What some programs write before text in UTF-8."""

SNIFFED_BYTES = 65_536

_SPARSE_LINE = re.compile(rb"^\S+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?$")


@dataclass(frozen=True)
class Format:
    """What the container knows of a content type: a new one is a row of `FORMATS` and a reader.

    Attributes:
        reader: The module that reads it, imported only when a channel holds it.
        names: What a channel's configuration may call it, AWS's names first.
        extensions: Those of its files, in lower case.
        row_bytes: Bytes of a row of 28 random numbers, written with 8 digits or as 32-bit floats.
        rates: MB a second that one core reads, the lowest and the highest measured (benchmarks/readers.py).
        begins: Tells by a file's first bytes whether the file is of this type.
        no_pipe: Why it can't come through a pipe, and what to use instead; empty if it can.
        is_table: Whether a setting can give any of its columns a role.
        has_csv_weights: Whether `csv_weights` says where its weights are.
        can_be_cut: Whether several workers can read parts of one file.
        is_cheap_to_repeat: Whether a second pass over local files costs less than to keep the rows.
        numbers_features: Whether files number their features, from 0 or from 1.
    """

    reader: str
    names: tuple[str, ...]
    extensions: tuple[str, ...]
    row_bytes: int
    rates: tuple[float, float]
    begins: Callable[[bytes], bool]
    no_pipe: str = ""
    is_table: bool = False
    has_csv_weights: bool = False
    can_be_cut: bool = False
    is_cheap_to_repeat: bool = False
    numbers_features: bool = False


def _first_line(head: bytes) -> bytes:
    return head.removeprefix(BOM).splitlines()[0] if head.strip() else b""


FORMATS: Mapping[ContentType, Format] = {
    "csv": Format(
        "smxgb.rows.readers.csv.reader",
        ("text/csv", "csv"),
        (".csv", ".tsv"),
        row_bytes=307,
        rates=(170, 220),
        begins=lambda _: False,  # any text may be CSV, so it is what is left
        is_table=True,
        has_csv_weights=True,
        can_be_cut=True,
    ),
    "libsvm": Format(
        "smxgb.rows.readers.libsvm.reader",
        ("text/libsvm", "text/x-libsvm", "libsvm"),
        (".libsvm", ".svm", ".svmlight"),
        row_bytes=311,
        rates=(110, 150),
        begins=lambda head: _SPARSE_LINE.match(_first_line(head)) is not None,
        numbers_features=True,
    ),
    "parquet": Format(
        "smxgb.rows.readers.parquet.reader",
        ("application/x-parquet", "parquet"),
        (".parquet", ".pq"),
        row_bytes=169,
        rates=(500, 1100),
        begins=lambda head: head.startswith(PARQUET_MAGIC),
        no_pipe="a Parquet file has its index at its end: use File or FastFile",
        is_table=True,
        can_be_cut=True,
        is_cheap_to_repeat=True,
    ),
    "recordio-protobuf": Format(
        "smxgb.rows.readers.recordio.reader",
        ("application/x-recordio-protobuf", "recordio-protobuf"),
        (".rec", ".recordio", ".pbr"),
        row_bytes=156,
        rates=(90, 120),
        begins=lambda head: head.startswith(RECORDIO_MAGIC),
    ),
}

DEFAULT: ContentType = "csv"
"""The type of files that begin like none of the others."""

CONTENT_TYPES: Mapping[str, ContentType] = {
    name: content_type for content_type, known in FORMATS.items() for name in known.names
}
"""The names that a channel's configuration may use, those of AWS's XGBoost image among them."""

EXTENSIONS: Mapping[str, ContentType] = {
    extension: content_type for content_type, known in FORMATS.items() for extension in known.extensions
}


def detect_content_type(channel: str, files: Sequence[Path]) -> tuple[ContentType, str]:
    """Return a channel's content type by its files' extensions, then their first bytes, and the reason.

    Of a compressed file, those of what it holds count.

    Raises:
        UserError: If the files are of two types.
    """
    found: dict[ContentType, tuple[Path, str]] = {}
    untold = None
    for file in files:
        content_type = EXTENSIONS.get(extension(file))
        if content_type:
            found.setdefault(content_type, (file, f"by the extension of {file.name}"))
        elif untold is None:
            untold = file
    if untold is not None:
        found.setdefault(_sniff(untold), (untold, f"by the first bytes of {untold.name}"))
    if len(found) > 1:
        (one, (first, _)), (other, (second, _)), *_ = found.items()
        raise UserError(
            f"channel '{channel}' holds {one} ({first.name}) and {other} ({second.name}): "
            "a channel's files must all be of one type."
        )
    content_type, (_, why) = found.popitem()
    return content_type, why


def extension(path: PurePath) -> str:
    """Return a file's extension in lower case: of a compressed one, that of what it holds."""
    name = PurePath(path.name.lower())
    return PurePath(name.stem).suffix if name.suffix in SUFFIXES else name.suffix


def _sniff(file: Path) -> ContentType:
    head = _head(file)
    return next((content_type for content_type, known in FORMATS.items() if known.begins(head)), DEFAULT)


def _head(file: Path) -> bytes:
    """Return the first bytes of what a file holds; none if it is damaged, which its reader says."""
    with file.open("rb") as stream:
        try:
            return read_fully(decompressed(stream).read, SNIFFED_BYTES)
        except (EOFError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return b""
