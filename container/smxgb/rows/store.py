"""The store: a channel's rows, read once and ready to be read again, with the summary of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smxgb.log import log
from smxgb.rows.batch import CELL_BYTES, rows_of_batch
from smxgb.rows.prefetch import prefetched
from smxgb.rows.query_groups import Runs
from smxgb.rows.spool import read, sort_by_group, write
from smxgb.rows.summary import Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from smxgb.rows.batch import Batch
    from smxgb.rows.query_groups import QueryGroups
    from smxgb.rows.readers import Reader

BLOCKS = 16 << 20
"""Bytes of blocks of text in work."""


@dataclass(frozen=True)
class Stored:
    """A channel whose rows can be read any number of times: `batches()` begins a pass.

    `groups` is None where the rows have none. `reading` is about how many bytes a pass holds at its most.
    """

    summary: Summary
    batches: Callable[[], Iterator[Batch]]
    groups: QueryGroups | None = None
    reading: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.summary.rows


def keep(reader: Reader, folder: Path, name: str) -> Stored:
    """Make the first pass over a channel and return what the later ones read.

    Rows that can't be read again are written to the file `name` in `folder`, and so are those of
    which a group must be brought together. Of the others, only the labels and such are read now. Raises
    UserError for rows that can't be trained on, PlatformError if the folder's volume is too small.
    """
    path = folder / name
    names = reader.declared.names or ()
    needed = reader.expected_rows * CELL_BYTES * (len(names) + 1)
    reading = reading_bytes(reader)
    first = _FirstPass()
    packed = False
    if reader.can_repeat:
        # Of the features, only categories must be known before all are read.
        for _ in first.over(with_progress(reader.batches(reader.declared.categorical), name)):
            pass
        summary = replace(first.summary, columns=len(names), present=None)
        if first.runs.are_whole:
            return Stored(summary, reader.batches, first.runs.groups(name), reading)
        packed = write(reader.batches(), path, needed)
    else:
        packed = write(first.over(with_progress(reader.batches(), name)), path, needed)
        summary = first.summary
    if not summary.rows:
        return Stored(summary, lambda: iter(()), None, reading)
    runs = first.runs
    if not runs.are_whole:
        log(f"Channel {name}: its rows are sorted, so that those of a group stand together.")
        sort_by_group(path, needed, packed=packed)
        runs = Runs()
        for _ in runs.watch(read(path, names)):
            pass
    return Stored(summary, lambda: prefetched(read(path, names)), runs.groups(name), reading)


class _FirstPass:
    """What the first pass over a channel sees."""

    def __init__(self) -> None:
        self.summary = Summary()
        self.runs = Runs()

    def over(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches again, taking note of them."""
        for batch in self.runs.watch(batches):
            self.summary = self.summary.merge(summarise(batch, self.summary.label))
            yield batch


def reading_bytes(reader: Reader) -> int:
    """Return about how many bytes the passes over a channel hold at their most, as measured."""
    columns = max(1, len(reader.declared.names or ()))
    batch = CELL_BYTES * columns * rows_of_batch(columns)
    return 6 * batch + 2 * reader.buffer_bytes if reader.can_repeat else BLOCKS + 5 * batch // 2


def with_progress(batches: Iterator[Batch], channel: str, every: float = 30.0) -> Iterator[Batch]:
    """Yield `batches`; every half minute, or so many seconds, log how many rows there were."""
    rows = 0
    said = time.monotonic()
    for batch in batches:
        yield batch
        rows += batch.rows
        if time.monotonic() - said >= every:
            said = time.monotonic()
            log(f"Channel {channel}: {rows:,} rows read.")
