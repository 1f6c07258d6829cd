"""Overlap: rows that stand in two places: in train and validation, or in two files of train."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

from smxgb.job.channels import SPELLINGS
from smxgb.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smxgb.job.channels import Channel
    from smxgb.job.data_files import DataFile

COMPARED_FILES = 20
"""Pairs of files of one size that are compared: each costs two reads, which a streamed channel feels."""

COMPARED_BYTES = 65_536
"""Bytes at the beginning and at the end of a file that are compared."""

CURE = (
    "Metrics and early stopping are then judged on rows that are trained on: give each channel its own files."
)


TESTED = frozenset({"test", "testing", "tests", "holdout"})
"""Names of folders whose rows are kept for another time."""

TWICE = "Its rows then count twice: take one of them out, unless it is meant."

COMPRESSED = frozenset({".gz", ".bz2", ".zst"})


def overlaps(train: Channel, validation: Channel | None) -> Iterator[str]:
    """Yield sentences that name what stands in two places, as far as the files of this host tell."""
    yield from _folders(train)
    pairs = list(_same_files(train, validation)) if validation else []
    if pairs:
        yield f"{_first_of(pairs)}. {CURE}"
    for channel in (train, validation) if validation else (train,):
        copies = list(_copies(channel))
        if copies:
            yield f"{_first_of(copies)}. {TWICE}"
        for plain, compressed in islice(_with_compressed(channel), 1):
            yield f"{plain} and {compressed} are one file by their names. {TWICE}"


def _folders(train: Channel) -> Iterator[str]:
    """Yield the sentence about folders of train that seem to be for something else."""
    folders = sorted(
        {
            part
            for file in _files(train)
            for part in file.path.relative_to(train.folder).parts[:-1]
            if SPELLINGS.get(part.lower()) == "validation" or part.lower() in TESTED
        }
    )
    if folders:
        yield (
            f"channel train holds a folder {printable(folders[0])!r}, whose rows are trained on. If they "
            "are for validation or a test, give them a channel or a prefix of their own, and keep them out "
            "of train's S3 prefix."
        )


def _first_of(pairs: list[tuple[str, str]]) -> str:
    mine, other = pairs[0]
    more = f", and {counted(len(pairs) - 1, 'more file')} are so too" if len(pairs) > 1 else ""
    return f"{mine} and {other} are the same file{more}"


def _same_files(train: Channel, validation: Channel) -> Iterator[tuple[str, str]]:
    of_size = _by_size(_files(train))
    pairs = ((mine, other) for other in _files(validation) for mine in of_size.get(other.size, ()))
    for mine, other in _alike(pairs):
        yield _shown(train, mine), _shown(validation, other)


def _copies(channel: Channel) -> Iterator[tuple[str, str]]:
    """Yield pairs of files of a channel that hold the same, of some of those that have one size.

    Streamed files are not compared: of thousands, many have one size, and each read crosses the network.
    """
    of_size = _by_size(channel.files if channel.mode == "File" else ())
    for mine, other in _alike(pair for files in of_size.values() for pair in pairwise(files)):
        yield _shown(channel, mine), _shown(channel, other)


def _by_size(files: Iterable[DataFile]) -> dict[int, list[DataFile]]:
    of_size: dict[int, list[DataFile]] = {}
    for file in files:
        of_size.setdefault(file.size, []).append(file)
    return of_size


def _alike(pairs: Iterator[tuple[DataFile, DataFile]]) -> Iterator[tuple[DataFile, DataFile]]:
    """Yield those of the first pairs of files of one size that begin and end alike."""
    return (pair for pair in islice(pairs, COMPARED_FILES) if _ends(pair[0]) == _ends(pair[1]))


def _with_compressed(channel: Channel) -> Iterator[tuple[str, str]]:
    """Yield pairs of a file and one of its name with the ending of compressed files behind it."""
    paths = {file.path: file for file in _files(channel)}
    for path, file in paths.items():
        plain = paths.get(path.with_suffix("")) if path.suffix in COMPRESSED else None
        if plain is not None:
            yield _shown(channel, plain), _shown(channel, file)


def _files(channel: Channel) -> tuple[DataFile, ...]:
    return () if channel.mode == "Pipe" else channel.files


def _shown(channel: Channel, file: DataFile) -> str:
    return printable(f"{channel.name}/{file.path.relative_to(channel.folder).as_posix()}")


def _ends(file: DataFile) -> bytes:
    with file.path.open("rb") as stream:
        first = stream.read(COMPARED_BYTES)
        stream.seek(max(0, file.size - COMPARED_BYTES))
        return first + stream.read(COMPARED_BYTES)
