"""Readers: the files of a channel as batches. One module for each content type, imported only when chosen."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from smxgb.job import blaming_changes
from smxgb.rows.readers.reader import Reader, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Channel, DataFile
    from smxgb.rows.batch import Batch
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.schema import Declared

__all__ = ["Reader", "can_be_cut", "open_reader"]


class _Module(Protocol):
    """What the module has that `Format.reader` names."""

    def open_channel(self, request: Request) -> Reader:
        """Return the reader of a channel."""

    def can_be_cut(self, file: DataFile) -> bool:
        """Tell whether a file, or a part of one, can be cut; only asked if `Format.can_be_cut` says so."""


def open_reader(
    channel: Channel, settings: ReadingSettings, *, threads: int, like: Declared | None
) -> Reader:
    """Return the reader of a channel, of which as much was read as tells what its files hold.

    `like` is what `train` declares when another channel is read.

    Raises UserError if the files disagree with each other, with the settings or with `train`, or hold columns
    that can't be features, PlatformError, as each pass does, if a file is not what the job has listed.
    """
    files = () if channel.mode == "Pipe" else channel.files
    with blaming_changes(files):
        reader = _module(channel).open_channel(Request(channel, settings, threads, like))

    def read(names: tuple[str, ...]) -> Iterator[Batch]:
        with blaming_changes(files):
            yield from reader.read(names)

    return replace(reader, read=read)


def can_be_cut(channel: Channel, file: DataFile) -> bool:
    """Tell whether the begin of a record can be found from any byte of a file, or of a part of one.

    Of a whole file the first bytes are looked at, of a part all of them.
    """
    return channel.format.can_be_cut and _module(channel).can_be_cut(file)


def _module(channel: Channel) -> _Module:
    return cast("_Module", import_module(channel.format.reader))
