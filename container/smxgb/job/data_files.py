"""Data files: what of a channel's folder holds rows, and whether it is still what the job has listed."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from smxgb.errors import Mistakes, PlatformError, UserError, as_job_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import PurePath


@dataclass(frozen=True)
class DataFile:
    """A file of a channel, or a part of one: `size` bytes from byte `begin` on.

    A part stands for the records of a text file that begin in it, or for that part of the row groups; the
    file has `whole` bytes then. `modified` is when the file was last written, in nanoseconds; None where a
    file system need not tell the same time twice.
    """

    path: Path
    size: int
    begin: int = 0
    whole: int | None = None
    modified: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether this is less than the file."""
        return self.whole is not None

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.begin + self.size

    @property
    def listed(self) -> int:
        """The bytes that the whole file had when the job listed it."""
        return self.size if self.whole is None else self.whole

    def cut(self, begin: int, end: int) -> Self:
        """Return the bytes from `begin` to `end` of a file, a part of it if that is not all."""
        whole = self.listed if end - begin < self.listed else None
        return type(self)(self.path, end - begin, begin, whole, self.modified)

    def check(self) -> None:
        """Raise PlatformError if the file is not the one that was listed, FileNotFoundError if it is gone."""
        self.compare(self.path.stat())

    def compare(self, found: os.stat_result, size: int | None = None) -> None:
        """Raise PlatformError if what was found of the file is not what was listed.

        `size` is how many bytes there were to read, if that is known.
        """
        now = found.st_size if size is None else size
        if now == self.listed and self.modified in {None, found.st_mtime_ns}:
            return
        what = (
            "was written again after the job had listed it"
            if now == self.listed
            else f"had {self.listed:,} bytes when the job listed it, and has {now:,} now"
        )
        raise PlatformError(
            f"{self.path} {what}: something beside this job changes it. Leave the channel's files alone "
            "until the job has ended, and start it again."
        )


class ListedFile(io.FileIO):
    """A data file that is being read. At its end, or behind it, it must still be the one that was listed."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.path)
        self._file = file

    def __del__(self) -> None:
        # A reader that fails leaves its generators, and this file in them, to the collector.
        self.close()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most `size` bytes; none at the end. Raises PlatformError if the file has changed."""
        data = super().read(size) or b""
        place = self.tell()
        if place > self._file.listed or (not data and size):
            self._file.compare(os.fstat(self.fileno()), place)
        return data


BACKUPS = ("~", ".bak", ".orig", ".swp", ".tmp")
"""How names end that editors and copying programs give to other states of a file."""


@contextmanager
def blaming_changes(files: Iterable[DataFile]) -> Iterator[None]:
    """Turn a mistake that is found in the block into PlatformError if one of the files has changed.

    A row that was cut off while it was read looks like a bad row.
    """
    try:
        yield
    except UserError:
        for file in files:
            file.check()
        raise


def find_files(folder: Path, *, streamed: bool = False) -> tuple[tuple[DataFile, ...], tuple[str, ...]]:
    """Return the data files below `folder`, sorted by path, and the names of what is not data there.

    Those of a `streamed` folder come from S3 as they are read: nothing says that it keeps their times.

    Not data: names that begin with `_` or `.` (Spark's and notebooks' own), or end as those of backups do,
    `manifest.json`, empty files, and folders that a link leads to again.

    Raises:
        UserError: For links that lead nowhere, and for what is neither file nor folder.
        PlatformError: If a folder can't be read.
    """
    mistakes = Mistakes()
    files: list[DataFile] = []
    skipped: list[str] = []
    seen: dict[tuple[int, int], Path] = {}

    def fail(error: OSError) -> None:
        raise as_job_error(error)

    for place, folders, names in os.walk(folder, followlinks=True, onerror=fail):
        below = Path(place)
        key = (below.stat().st_dev, below.stat().st_ino)
        if key in seen:
            skipped.append(
                f"{below.relative_to(folder)}/ (the same folder as {_relative(seen[key], folder)})"
            )
            folders.clear()
            continue
        seen[key] = below
        skipped += [f"{(below / name).relative_to(folder)}/" for name in folders if _hidden(name)]
        folders[:] = sorted(name for name in folders if not _hidden(name))
        for name in sorted(names):
            path = below / name
            found = path.stat() if path.is_file() else None
            is_empty = found is not None and not found.st_size
            if not _is_data(name) or is_empty:
                skipped.append(f"{path.relative_to(folder)}{' (empty)' if is_empty else ''}")
            elif found is None:
                mistakes.add(_no_file(path, folder))
            else:
                modified = None if streamed else found.st_mtime_ns
                files.append(DataFile(path, found.st_size, modified=modified))
    mistakes.raise_any()
    files.sort(key=lambda file: file.path.parts)
    return tuple(files), tuple(sorted(skipped))


def _relative(place: Path, folder: Path) -> str:
    return "the channel's own" if place == folder else f"{place.relative_to(folder)}/"


def _no_file(path: Path, folder: Path) -> str:
    shown = f"channel '{folder.name}': {path.relative_to(folder)}"
    if path.is_symlink():
        return f"{shown} is a link to {path.readlink()}, which is not there: link to a file, or remove it."
    return f"{shown} is a FIFO, a socket or a device: a channel holds plain files."


def is_data(path: PurePath) -> bool:
    """Return whether a file with this path below its channel holds rows, if it is not empty."""
    return _is_data(path.name) and not any(map(_hidden, path.parts[:-1]))


def _is_data(name: str) -> bool:
    return not _hidden(name) and not name.endswith(BACKUPS) and name != "manifest.json"


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))
