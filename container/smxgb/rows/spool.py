"""The spool: batches in a file of Arrow's IPC stream, to be read any number of times."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from smxgb.errors import PlatformError
from smxgb.log import log
from smxgb.machine import memory_available
from smxgb.rows.batch import ROWS, SPARSE, Dense, Sparse
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from smxgb.rows.batch import Batch
    from smxgb.rows.roles import RoleName

MARGIN = 1.25
"""How far the estimate may be wrong either way: it rests on a file's first lines."""

PACKED = pa.ipc.IpcWriteOptions(compression="zstd")
"""Of whole numbers zstd leaves 0.27, of floats with 1 and 3 decimals 0.31 and 0.91. lz4 leaves 0.43, 0.51 and
1.00 of them, in the same time."""


def write(batches: Iterable[Batch], path: Path, needed: int) -> bool:
    """Write batches, which take about `needed` bytes; without one, the file is empty.

    They are packed if the volume might not hold them otherwise: return whether they are. Raises PlatformError
    if the volume is too small even so, as far as the first batch can tell.
    """
    records = map(_record, batches)
    first = next(records, None)
    if first is None:
        path.touch()
        return False
    packed = _must_pack(first, path, needed)
    with (
        _room_for(path, needed),
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, first.schema, options=PACKED if packed else None) as writer,
    ):
        writer.write_batch(first)
        del first
        for record in records:
            writer.write_batch(record)
    return packed


def _must_pack(first: pa.RecordBatch, path: Path, needed: int) -> bool:
    free = shutil.disk_usage(path.parent).free
    if MARGIN * needed <= free:
        return False
    counted = pa.MockOutputStream()
    with pa.ipc.new_stream(counted, first.schema, options=PACKED) as writer:
        writer.write_batch(first)
    packed = round(needed * min(1.0, counted.size() / max(1, first.nbytes)))
    if packed > MARGIN * free:
        raise _no_space(path, packed)
    log(
        f"The rows of {path.name} are packed: they would take about {readable_bytes(needed)} of the "
        f"{readable_bytes(free)} that are free in {path.parent}, and so take about {readable_bytes(packed)}."
    )
    return True


def read(path: Path, names: tuple[str, ...]) -> Iterator[Batch]:
    """Yield the batches that were written; dense ones have features called `names`."""
    # Plain reads, no mapping: mapped pages count as the process's memory.
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for record in stream:
            yield _batch(record, names)


def sort_by_group(path: Path, needed: int, *, packed: bool) -> None:
    """Bring the rows of each group together, in their order; the file is written anew.

    The rows take about `needed` bytes, in memory if they are packed. Raises PlatformError if volume or memory
    is too small.
    """
    size = path.stat().st_size
    beside = path.with_name(f"{path.name}-sorted")
    if size > shutil.disk_usage(path.parent).free:
        raise _no_space(path, size)
    if packed and needed > memory_available():
        raise PlatformError(
            f"the rows of a group do not stand together in {path.name}, and to sort them takes about "
            f"{readable_bytes(needed)} of memory: sort the files by group, or give the job a larger volume "
            "(volume_size)."
        )
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all().unify_dictionaries()
        roles = table.schema.metadata[b"roles"].decode().split()
        order = np.argsort(table.column(roles.index("group")).to_numpy(), kind="stable")
        with (
            _room_for(path, size),
            pa.OSFile(str(beside), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema, options=PACKED if packed else None) as writer,
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
