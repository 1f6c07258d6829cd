"""The spool: batches in a file of Arrow's IPC stream, to be read any number of times."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from smxgb.errors import PlatformError
from smxgb.rows.batch import ROWS, SPARSE, Dense, Sparse
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from smxgb.rows.batch import Batch
    from smxgb.rows.roles import RoleName

MARGIN = 1.25
"""How far the estimate must exceed the free space to be believed: it rests on a file's first lines."""


def write(batches: Iterable[Batch], path: Path, needed: int) -> None:
    """Write batches, which take about `needed` bytes; without one, the file is empty.

    Raises PlatformError if the volume is too small.
    """
    if needed > MARGIN * shutil.disk_usage(path.parent).free:
        raise _no_space(path, needed)
    with _room_for(path, needed), pa.OSFile(str(path), "wb") as file:
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        for batch in batches:
            record = _record(batch)
            writer = writer or pa.ipc.new_stream(file, record.schema)
            writer.write_batch(record)
        if writer is not None:
            writer.close()


def read(path: Path, names: tuple[str, ...]) -> Iterator[Batch]:
    """Yield the batches that were written; dense ones have features called `names`."""
    # Plain reads, no mapping: mapped pages count as the process's memory.
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for record in stream:
            yield _batch(record, names)


def sort_by_group(path: Path) -> None:
    """Bring the rows of each group together, in their order; the file is written anew."""
    size = path.stat().st_size
    beside = path.with_name(f"{path.name}-sorted")
    if size > shutil.disk_usage(path.parent).free:
        raise _no_space(path, size)
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all().unify_dictionaries()
        roles = table.schema.metadata[b"roles"].decode().split()
        order = np.argsort(table.column(roles.index("group")).to_numpy(), kind="stable")
        with (
            _room_for(path, size),
            pa.OSFile(str(beside), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as writer,
        ):
            for start in range(0, len(order), ROWS):
                writer.write_table(table.take(order[start : start + ROWS]).combine_chunks())
    beside.replace(path)


@contextmanager
def _room_for(path: Path, needed: int) -> Iterator[None]:
    """Turn a full disk into a sentence about it."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _no_space(path, needed) from error
        raise


def _record(batch: Batch) -> pa.RecordBatch:
    """Return a batch as one record of the spool: its roles, which the metadata name, then its features."""
    roles = {role: pa.array(array) for role, array in batch.roles.items()}
    features = [column.combine_chunks() for column in batch.features.columns]
    columns = [*roles.values(), *features]
    fields = [pa.field(str(index), column.type) for index, column in enumerate(columns)]
    metadata = {"roles": " ".join(roles), "form": type(batch).__name__}
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata))


def _batch(record: pa.RecordBatch, names: tuple[str, ...]) -> Batch:
    metadata = record.schema.metadata
    roles = metadata[b"roles"].decode().split()
    values = {cast("RoleName", role): record.column(index).to_numpy() for index, role in enumerate(roles)}
    columns = record.columns[len(roles) :]
    if metadata[b"form"] == b"Sparse":
        return Sparse(pa.Table.from_arrays(columns, schema=SPARSE), values)
    return Dense(pa.Table.from_arrays(columns, list(names)), values)


def _no_space(path: Path, needed: int) -> PlatformError:
    free = shutil.disk_usage(path.parent).free
    return PlatformError(
        f"the rows of {path.name} need about {readable_bytes(needed)} in {path.parent}, where "
        f"{readable_bytes(free)} are free: give the job a larger volume (volume_size), or set spool_dir."
    )
