"""The seeded table of the benchmarks: float features of 8 digits, a binary label that depends on some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK = 100_000


def blocks(rows: int, columns: int, seed: int = 7, part: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the table in blocks of rows: the column `label`, then `x0`, `x1`, ... as float32.

    Each `part` has rows of its own; how the label depends on them is the same in all parts of a seed.
    """
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=columns) * (np.arange(columns) % 3 == 0)
    if part:
        generator = np.random.default_rng([seed, part])
    names = ["label", *(f"x{index}" for index in range(columns))]
    for start in range(0, rows, BLOCK):
        values = generator.normal(size=(min(BLOCK, rows - start), columns)).astype(np.float32)
        score = values @ weights + np.sin(3 * values[:, 1]) + generator.logistic(size=len(values))
        yield pa.record_batch([(score > 0).astype(np.float32), *values.T.copy()], names=names)


def write_csv(path: Path, rows: int, columns: int) -> None:
    """Write the table as CSV without a header."""
    options = pyarrow.csv.WriteOptions(include_header=False)
    with path.open("wb") as stream:
        for block in blocks(rows, columns):
            pyarrow.csv.write_csv(block, stream, options)


def write_parquet(path: Path, rows: int, columns: int) -> None:
    """Write the table as Parquet, a row group for each block."""
    writer = None
    for block in blocks(rows, columns):
        writer = writer or pyarrow.parquet.ParquetWriter(path, block.schema)
        writer.write_batch(block)
    if writer:
        writer.close()


WRITERS = {"csv": write_csv, "parquet": write_parquet}
