"""Content types: their names, and how files show which they are."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job.compression import SUFFIXES, decompressed, read_fully

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

type ContentType = Literal["csv", "parquet", "libsvm", "recordio-protobuf"]

CONTENT_TYPES: Mapping[str, ContentType] = {
    "text/csv": "csv",
    "csv": "csv",
    "text/libsvm": "libsvm",
    "text/x-libsvm": "libsvm",
    "libsvm": "libsvm",
    "application/x-parquet": "parquet",
    "parquet": "parquet",
    "application/x-recordio-protobuf": "recordio-protobuf",
    "recordio-protobuf": "recordio-protobuf",
}
"""The names that a channel's configuration may use, those of AWS's XGBoost image among them."""

EXTENSIONS: Mapping[str, ContentType] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".rec": "recordio-protobuf",
    ".recordio": "recordio-protobuf",
    ".pbr": "recordio-protobuf",
}

PARQUET_MAGIC = b"PAR1"
RECORDIO_MAGIC = bytes.fromhex("0a23d7ce")
BOM = b"\xef\xbb\xbf"
"""What some programs write before text in UTF-8."""

SNIFFED_BYTES = 65_536

_SPARSE_LINE = re.compile(rb"^\S+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?$")


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
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    if head.startswith(RECORDIO_MAGIC):
        return "recordio-protobuf"
    first = head.removeprefix(BOM).splitlines()[0] if head.strip() else b""
    return "libsvm" if _SPARSE_LINE.match(first) else "csv"


def _head(file: Path) -> bytes:
    """Return the first bytes of what a file holds; none if it is damaged, which its reader says."""
    with file.open("rb") as stream:
        try:
            return read_fully(decompressed(stream).read, SNIFFED_BYTES)
        except (EOFError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return b""
