"""Overlap: files of the train channel that the validation channel holds too, so that metrics mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.job.channels import SPELLINGS
from smxgb.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job.channels import Channel
    from smxgb.job.data_files import DataFile

COMPARED_FILES = 20
"""Pairs of files of one size that are compared: each costs two reads, which a streamed channel feels."""

COMPARED_BYTES = 65_536
"""Bytes at the beginning and at the end of a file that are compared."""

CURE = (
    "Metrics and early stopping are then judged on rows that are trained on: give each channel its own files."
)


def overlaps(train: Channel, validation: Channel | None) -> Iterator[str]:
    """Yield sentences that name what of validation stands in train, as far as the files of this host tell."""
    folders = sorted(
        {
            part
            for file in _files(train)
            for part in file.path.relative_to(train.folder).parts[:-1]
            if SPELLINGS.get(part.lower()) == "validation"
        }
    )
    if folders:
        yield (
            f"channel train holds a folder {printable(folders[0])!r}, whose rows are trained on. If they "
            "are for validation, give them a channel of their own, and keep them out of train's S3 prefix."
        )
    pairs = list(_same_files(train, validation)) if validation else []
    if pairs:
        mine, other = pairs[0]
        more = f", and {counted(len(pairs) - 1, 'more file')} are so too" if len(pairs) > 1 else ""
        yield f"{mine} and {other} are the same file{more}. {CURE}"


def _same_files(train: Channel, validation: Channel) -> Iterator[tuple[str, str]]:
    of_size: dict[int, list[DataFile]] = {}
    for file in _files(train):
        of_size.setdefault(file.size, []).append(file)
    pairs = ((mine, other) for other in _files(validation) for mine in of_size.get(other.size, ()))
    for _, (mine, other) in zip(range(COMPARED_FILES), pairs, strict=False):
        if _ends(mine) == _ends(other):
            yield _shown(train, mine), _shown(validation, other)


def _files(channel: Channel) -> tuple[DataFile, ...]:
    return () if channel.mode == "Pipe" else channel.files


def _shown(channel: Channel, file: DataFile) -> str:
    return printable(f"{channel.name}/{file.path.relative_to(channel.folder).as_posix()}")


def _ends(file: DataFile) -> bytes:
    with file.path.open("rb") as stream:
        first = stream.read(COMPARED_BYTES)
        stream.seek(max(0, file.size - COMPARED_BYTES))
        return first + stream.read(COMPARED_BYTES)
