"""What a channel's first pass leaves for the later ones: its rows and a summary of them."""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.batch import CELL_BYTES, Dense
from smxgb.errors import PlatformError
from smxgb.groups import Runs
from smxgb.progress import readable_bytes
from smxgb.readers.ahead import ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from smxgb.batch import Batch, FloatArray, Role, Schema
    from smxgb.groups import Groups
    from smxgb.readers import Reader

DISTINCT = 20
"""Labels are listed up to this many different ones."""

MARGIN = 1.25
"""How far the estimate must exceed the free space to be believed: it rests on a file's first lines."""

ROLES: tuple[Role, ...] = ("label", "weight", "group", "lower", "upper")


@dataclass(frozen=True)
class Labels:
    """The labels of some rows.

    `whole` says that all are whole numbers; `different` has the different ones in order, None if there are
    more than `DISTINCT`.
    """

    lowest: float
    highest: float
    whole: bool
    different: tuple[float, ...] | None

    def merge(self, other: Labels) -> Labels:
        """Return the labels of both."""
        different = None
        if self.different is not None and other.different is not None:
            different = tuple(sorted({*self.different, *other.different}))
        return Labels(
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.whole and other.whole,
            different if different is not None and len(different) <= DISTINCT else None,
        )


@dataclass(frozen=True)
class Summary:
    """What a pass over rows has seen.

    `dropped` rows had no valid label. `label` is None if there is no row or no label. `missing` counts the
    feature cells without a value, None if the pass read no features. `weights` is the sum of the weights,
    None if the rows have none.
    """

    rows: int = 0
    dropped: int = 0
    label: Labels | None = None
    missing: int | None = 0
    weights: float | None = None

    def shape(self, columns: int) -> Shape:
        """Return the shape of the rows that were seen, with so many feature columns."""
        cells = self.rows * columns
        return Shape(self.rows, columns, (self.missing or 0) / cells if cells else 0.0)

    def merge(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        return Summary(
            self.rows + other.rows,
            self.dropped + other.dropped,
            _both(Labels.merge, self.label, other.label),
            None if self.missing is None or other.missing is None else self.missing + other.missing,
            _both(float.__add__, self.weights, other.weights),
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
    """The size of a matrix. `missing` is the share of its values that are missing, 0 to 1; 0 if unknown."""

    rows: int
    columns: int
    missing: float = 0.0


@dataclass(frozen=True)
class Stored:
    """A channel whose rows can be read any number of times: `batches()` begins a pass.

    `groups` is None where the rows have none.
    """

    summary: Summary
    batches: Callable[[], Iterator[Batch]]
    groups: Groups | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.summary.rows


def keep(reader: Reader, schema: Schema, folder: Path, name: str) -> Stored:
    """Make the first pass over a channel and return what the later ones read.

    Rows that are not cheap to read again are written to the file `name` in `folder`. Of the others, only the
    labels and such are read now. Raises UserError for rows that can't be trained on, PlatformError if the
    folder's volume is too small.
    """
    runs = Runs()
    if reader.cheap_to_repeat:
        summary = Summary(missing=None)
        for batch in runs.watch(reader.batches(replace(schema, names=()))):
            summary = summary.merge(summarise(batch, summary.label))
        return Stored(summary, lambda: reader.batches(schema), runs.groups(name))
    path = folder / name
    summary = _spool(reader, schema, path, runs)
    return Stored(
        summary, lambda: ahead(_spooled(path, schema)) if summary.rows else iter(()), runs.groups(name)
    )


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
        sum(column.null_count for column in batch.features.columns),
        None if batch.weight is None else float(batch.weight.sum(dtype=np.float64)),
    )


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


def _spool(reader: Reader, schema: Schema, path: Path, runs: Runs) -> Summary:
    """Write a channel's rows as an Arrow IPC stream; no file is left without a complete one."""
    needed = reader.expected_rows() * CELL_BYTES * (len(schema.names) + 1)
    if needed > MARGIN * shutil.disk_usage(path.parent).free:
        raise _no_space(path, needed)
    summary = Summary()
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    try:
        with pa.OSFile(str(path), "wb") as file:
            for batch in runs.watch(reader.batches(schema)):
                summary = summary.merge(summarise(batch, summary.label))
                record = _record(batch)
                writer = writer or pa.ipc.new_stream(file, record.schema)
                writer.write_batch(record)
            if writer is not None:
                writer.close()
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _no_space(path, needed) from error
        raise
    return summary


def _spooled(path: Path, schema: Schema) -> Iterator[Batch]:
    # Plain reads, no mapping: mapped pages count as the process's memory.
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for record in stream:
            yield _batch(record, schema)


def _record(batch: Batch) -> pa.RecordBatch:
    """Return a batch as one record of the spool: its roles, which the metadata name, then its features."""
    arrays = {role: getattr(batch, role) for role in ROLES}
    roles = {role: pa.array(array) for role, array in arrays.items() if array is not None}
    features = [column.combine_chunks() for column in batch.features.columns]
    columns = [*roles.values(), *features]
    fields = [pa.field(str(index), column.type) for index, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, {"roles": " ".join(roles)}))


def _batch(record: pa.RecordBatch, schema: Schema) -> Batch:
    roles = record.schema.metadata[b"roles"].decode().split()
    values = {role: record.column(index).to_numpy() for index, role in enumerate(roles)}
    features = pa.Table.from_arrays(record.columns[len(roles) :], list(schema.names))
    return Dense(features, values.pop("label", None), **values)


def _no_space(path: Path, needed: int) -> PlatformError:
    free = shutil.disk_usage(path.parent).free
    return PlatformError(
        f"the rows of {path.name} need about {readable_bytes(needed)} in {path.parent}, where "
        f"{readable_bytes(free)} are free: give the job a larger volume (volume_size), or set spool_dir."
    )
