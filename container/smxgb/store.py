"""What a channel's first pass leaves for the later ones: its rows and a summary of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.batch import CELL_BYTES, ROLES, Dense, Sparse, rows_of_batch
from smxgb.groups import Runs
from smxgb.labels import DISTINCT, Labels
from smxgb.log import log
from smxgb.readers.ahead import ahead
from smxgb.readers.categories import used
from smxgb.spool import read, sort_by_group, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from smxgb.batch import Batch, FloatArray, Role, Schema
    from smxgb.groups import Groups
    from smxgb.readers import Reader

BLOCKS = 16 << 20
"""Bytes of blocks of text in work."""


@dataclass(frozen=True)
class Extent:
    """The lowest and highest index of sparse rows, as their files count; None where no value is present.

    `width` is the most features that a file says it has, 0 if none says so.
    """

    lowest: int | None
    highest: int | None
    width: int = 0

    def merge(self, other: Extent) -> Extent:
        """Return the extent of both."""
        return Extent(
            _both(min, self.lowest, other.lowest),
            _both(max, self.highest, other.highest),
            max(self.width, other.width),
        )


@dataclass(frozen=True)
class Summary:
    """What a pass over rows has seen.

    `dropped` rows had no valid label. `label` is None if there is no row or no label. `present` counts the
    feature cells with a value, None if the pass read no features. `weights` is the sum of the weights, None
    if the rows have none. `columns` is the number of features of dense rows, `extent` that of sparse ones;
    each is None if there are no such rows. `categories` has those that occur, by the name of their feature.
    `roles` are what the rows have beside features.
    """

    rows: int = 0
    dropped: int = 0
    label: Labels | None = None
    present: int | None = 0
    weights: float | None = None
    columns: int | None = None
    extent: Extent | None = None
    categories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    roles: frozenset[Role] = frozenset()

    def shape(self, columns: int) -> Shape:
        """Return the shape of the rows that were seen, with so many feature columns."""
        cells = self.rows * columns
        missing = 1 - self.present / cells if self.present is not None and cells else 0.0
        return Shape(self.rows, columns, missing, sparse=self.extent is not None)

    def merge(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        return Summary(
            self.rows + other.rows,
            self.dropped + other.dropped,
            _both(Labels.merge, self.label, other.label),
            None if self.present is None or other.present is None else self.present + other.present,
            _both(float.__add__, self.weights, other.weights),
            _both(max, self.columns, other.columns),
            _both(Extent.merge, self.extent, other.extent),
            {
                name: self.categories.get(name, frozenset()) | other.categories.get(name, frozenset())
                for name in {**self.categories, **other.categories}
            },
            self.roles | other.roles,
        )


def no_rows(channel: str, summary: Summary) -> str:
    """Return the mistake of a channel without rows, by why it has none."""
    if summary.dropped:
        return (
            f"channel {channel}: all {summary.dropped:,} rows were left out, for none has a number as its "
            "label (invalid_label=drop): check label_column."
        )
    return (
        f"channel {channel} has no rows, its files hold column names at most: check its S3 address and what "
        "wrote the files."
    )


@dataclass(frozen=True)
class Shape:
    """The size of a matrix. `missing` is the share of its values that are missing, 0 to 1; 0 if unknown.

    `sparse` says that only the others are stored.
    """

    rows: int
    columns: int
    missing: float = 0.0
    sparse: bool = False


@dataclass(frozen=True)
class Stored:
    """A channel whose rows can be read any number of times: `batches()` begins a pass.

    `groups` is None where the rows have none. `reading` is about how many bytes a pass holds at its most.
    """

    summary: Summary
    batches: Callable[[], Iterator[Batch]]
    groups: Groups | None = None
    reading: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.summary.rows


def keep(reader: Reader, schema: Schema, folder: Path, name: str) -> Stored:
    """Make the first pass over a channel and return what the later ones read.

    Rows that are not cheap to read again are written to the file `name` in `folder`, and so are those of
    which a group must be brought together. Of the others, only the labels and such are read now. Raises
    UserError for rows that can't be trained on, PlatformError if the folder's volume is too small.
    """
    path = folder / name
    needed = reader.expected_rows() * CELL_BYTES * (len(schema.names) + 1)
    reading = reading_bytes(reader, schema)
    first = _FirstPass()
    if reader.cheap_to_repeat:
        # Of the features, only categories must be known before all are read.
        some = replace(schema, names=tuple(schema.categories))
        for _ in first.over(told(reader.batches(some), name)):
            pass
        summary = replace(first.summary, columns=len(schema.names), present=None)
        if first.runs.are_whole:
            return Stored(summary, lambda: reader.batches(schema), first.runs.groups(name), reading)
        write(reader.batches(schema), path, needed)
    else:
        write(first.over(told(reader.batches(schema), name)), path, needed)
        summary = first.summary
    if not summary.rows:
        return Stored(summary, lambda: iter(()), None, reading)
    runs = first.runs
    if not runs.are_whole:
        log(f"Channel {name}: its rows are sorted, so that those of a group stand together.")
        sort_by_group(path)
        runs = Runs()
        for _ in runs.watch(read(path, schema.names)):
            pass
    return Stored(summary, lambda: ahead(read(path, schema.names)), runs.groups(name), reading)


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


def reading_bytes(reader: Reader, schema: Schema) -> int:
    """Return about how many bytes the passes over a channel hold at their most, as measured."""
    columns = max(1, len(schema.names))
    batch = CELL_BYTES * columns * rows_of_batch(columns)
    return 6 * batch + 2 * reader.buffer_bytes if reader.cheap_to_repeat else BLOCKS + 5 * batch // 2


def told(batches: Iterator[Batch], channel: str, every: float = 30.0) -> Iterator[Batch]:
    """Yield `batches`; every half minute, or so many seconds, log how many rows there were."""
    rows = 0
    said = time.monotonic()
    for batch in batches:
        yield batch
        rows += batch.rows
        if time.monotonic() - said >= every:
            said = time.monotonic()
            log(f"Channel {channel}: {rows:,} rows read.")


def summarise(batch: Batch, known: Labels | None = None) -> Summary:
    """Return the summary of one batch; `known` are labels seen before, which are quicker to look for."""
    labels = None
    if batch.label is not None and batch.rows:
        labels = Labels(
            float(batch.label.min()),
            float(batch.label.max()),
            bool((batch.label == np.floor(batch.label)).all()),
            _different(batch.label, () if known is None else known.different),
        )
    return Summary(
        batch.rows,
        batch.dropped,
        labels,
        _present(batch),
        None if batch.weight is None else float(batch.weight.sum(dtype=np.float64)),
        batch.features.num_columns if isinstance(batch, Dense) else None,
        _extent(batch) if isinstance(batch, Sparse) else None,
        {} if isinstance(batch, Sparse) else _categories(batch),
        frozenset(role for role in ROLES if getattr(batch, role) is not None),
    )


def _present(batch: Batch) -> int:
    if isinstance(batch, Sparse):
        return int(np.count_nonzero(~np.isnan(batch.values)))
    return sum(len(column) - column.null_count for column in batch.features.columns)


def _categories(batch: Dense) -> dict[str, frozenset[str]]:
    columns = zip(batch.features.column_names, batch.features.columns, strict=True)
    return {name: used(column) for name, column in columns if pa.types.is_dictionary(column.type)}


def _extent(batch: Sparse) -> Extent:
    indices = batch.indices
    if not len(indices):
        return Extent(None, None, batch.width)
    return Extent(int(indices.min()), int(indices.max()), batch.width)


def _different(label: FloatArray, known: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Return the different labels, and `known`: taken one by one, for a sort would cost much more."""
    if known is None:
        return None
    found = set(known)
    for value in known:
        label = label[label != value]
    while len(label):
        if len(found) == DISTINCT:
            return None
        found.add(float(label[0]))
        label = label[label != label[0]]
    return tuple(sorted(found))


def _both[T](join: Callable[[T, T], T], one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return join(one, other)
