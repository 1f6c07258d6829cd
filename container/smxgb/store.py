"""What a channel's first pass leaves for the later ones: its rows, kept where reading them again would cost, and
a summary of them.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.batch import Dense
from smxgb.errors import PlatformError
from smxgb.readers.ahead import ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from smxgb.batch import Batch, FloatArray, Role, Schema
    from smxgb.readers import Reader

DISTINCT = 20
"""Labels are listed up to this many different ones."""

CELL_BYTES = 4
MARGIN = 1.25
"""How far the estimate must exceed the free space to be believed: it rests on a file's first lines."""

ROLES: tuple[Role, ...] = ("label", "weight", "group", "lower", "upper")


@dataclass(frozen=True)
class Summary:
    """What a pass over rows has seen.

    `dropped` rows had an invalid label. `labels` are the different labels in order, None if there are more than
    `DISTINCT`; `whole` says that all are whole numbers. `label_min` and `label_max` are None without labels.
    `missing` counts feature cells, None if the pass read no features. `weights` is the sum of the weights, None if
    the rows have none.
    """

    rows: int = 0
    dropped: int = 0
    label_min: float | None = None
    label_max: float | None = None
    whole: bool = True
    labels: tuple[float, ...] | None = ()
    missing: int | None = 0
    weights: float | None = None

    def merge(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        return Summary(
            self.rows + other.rows,
            self.dropped + other.dropped,
            _either(min, self.label_min, other.label_min),
            _either(max, self.label_max, other.label_max),
            self.whole and other.whole,
            _joined(self.labels, other.labels),
            None if self.missing is None or other.missing is None else self.missing + other.missing,
            _either(lambda one, two: one + two, self.weights, other.weights),
        )


@dataclass(frozen=True)
class Stored:
    """A channel whose rows can be read any number of times: `batches()` begins a pass."""

    summary: Summary
    batches: Callable[[], Iterator[Batch]]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.summary.rows


def keep(reader: Reader, schema: Schema, folder: Path, name: str) -> Stored:
    """Make the first pass over a channel and return what the later ones read.

    Rows that are not cheap to read again are written to the file `name` in `folder`, as an Arrow IPC stream. It is
    read with plain reads, for a mapped file counts as the process's memory. Raises UserError for rows that can't
    be trained on, PlatformError if the folder's volume is too small.
    """
    summary = Summary()
    if reader.cheap_to_repeat:
        for batch in reader.batches(replace(schema, names=())):
            summary = summary.merge(replace(summarise(batch, summary.labels), missing=None))
        return Stored(summary, lambda: reader.batches(schema))
    path = folder / name
    needed = reader.expected_rows() * CELL_BYTES * (len(schema.names) + 1)
    if needed > MARGIN * shutil.disk_usage(folder).free:
        raise _no_space(folder, needed)
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    try:
        with pa.OSFile(str(path), "wb") as file:
            for batch in reader.batches(schema):
                summary = summary.merge(summarise(batch, summary.labels))
                record = _record(batch)
                writer = writer or pa.ipc.new_stream(file, record.schema)
                writer.write_batch(record)
            if writer is not None:
                writer.close()
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _no_space(folder, needed) from error
        raise
    return Stored(summary, lambda: ahead(_read(path, schema)) if summary.rows else iter(()))


def summarise(batch: Batch, known: tuple[float, ...] | None = ()) -> Summary:
    """Return the summary of one batch; `known` are labels seen before, None if they are too many to list."""
    label = batch.label
    found = label is not None and bool(len(label))
    missing = sum(column.null_count for column in batch.features.columns)
    return Summary(
        rows=batch.rows,
        dropped=batch.dropped,
        label_min=float(label.min()) if label is not None and found else None,
        label_max=float(label.max()) if label is not None and found else None,
        whole=label is None or bool((label == np.floor(label)).all()),
        labels=_distinct(label, known) if label is not None else (),
        missing=missing,
        weights=None if batch.weight is None else float(batch.weight.sum(dtype=np.float64)),
    )


def _distinct(label: FloatArray, known: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Return the different labels, those of `known` first looked for: a sort would cost more than all the rest."""
    if known is None:
        return None
    labels = set(known)
    for value in known:
        label = label[label != value]
    while len(label):
        if len(labels) == DISTINCT:
            return None
        value = float(label[0])
        labels.add(value)
        label = label[label != value]
    return tuple(sorted(labels))


def _joined(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if one is None or other is None:
        return None
    labels = {*one, *other}
    return tuple(sorted(labels)) if len(labels) <= DISTINCT else None


def _either(join: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return join(one, other)


def _record(batch: Batch) -> pa.RecordBatch:
    """Return a batch as one record of the spool: its roles, which the metadata name, then its features."""
    arrays = {role: getattr(batch, role) for role in ROLES}
    roles = {role: pa.array(array) for role, array in arrays.items() if array is not None}
    features = [
        column.chunk(0) if column.num_chunks else pa.array([], pa.float32())
        for column in batch.features.columns
    ]
    columns = [*roles.values(), *features]
    fields = [pa.field(str(index), column.type) for index, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, {"roles": ",".join(roles)}))


def _read(path: Path, schema: Schema) -> Iterator[Batch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        roles = stream.schema.metadata[b"roles"].decode()
        names = tuple(roles.split(",")) if roles else ()
        for record in stream:
            others = {role: record.column(index).to_numpy() for index, role in enumerate(names)}
            features = pa.table(record.columns[len(names) :], list(schema.names))
            yield Dense(features, others.pop("label", None), **others)


def _no_space(folder: Path, needed: int) -> PlatformError:
    free = shutil.disk_usage(folder).free
    return PlatformError(
        f"the channel's rows need about {needed / 1e9:.2f} GB in {folder}, where {free / 1e9:.2f} GB are free: give the job "
        f"a larger volume (volume_size), or set spool_dir to a larger one."
    )
