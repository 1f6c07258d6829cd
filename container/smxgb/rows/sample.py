"""The sample: rows of `train` that the quantile cuts are taken from, in the place of all of them.

A row is chosen by its number among the rows of all workers: those with the lowest hashes. So a table gives
the same sample in any format, whatever its batches are. Of each feature so many present values are chosen, by
a limit of its own for the hashes: one that is often missing takes them from more rows. Each limit only falls
while rows are read, so one pass gives what two would.

Beside these values the sample has, of each feature, the lowest and the highest of all rows, all values if
there are at most `DISTINCT` different ones, and each category: rare ones keep cuts of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.rows.batch import Dense, Sparse
from smxgb.rows.store import Stored
from smxgb.rows.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from smxgb.rows.batch import Batch, FloatArray
    from smxgb.rows.schema import Schema
    from smxgb.rows.worker_group import Group

    type Keys = npt.NDArray[np.uint32]

DISTINCT = 256
"""All values of a feature are in the sample if there are at most so many."""

FEWEST = 4
"""A table is sampled if it has at least so many times the rows that are asked for."""

SPARSEST = 16
"""A feature of which one row in so many has a value still is sampled."""

MOST_ROWS = 4
"""The sample has at most so many times the rows that are asked for, where features have few values."""

HASHES = 1 << 32


def sampled(
    train: Stored, schema: Schema, summaries: Sequence[Mapping[str, Summary]], wanted: int, group: Group
) -> Stored | None:
    """Return a sample of about `wanted` values of each feature; None where all rows are to be taken.

    All workers call it, and have one outcome: all rows are taken of few rows, of sparse ones, and where a
    feature is missing in nearly all rows.

    Args:
        train: This worker's rows of `train`.
        schema: The features of the rows.
        summaries: What each worker has seen of each channel, by rank.
        wanted: How many values of each feature; 0 for all rows.
        group: All workers.
    """
    of_workers = [found["train"] for found in summaries]
    rows = sum(found.rows for found in of_workers)
    if not wanted or rows < FEWEST * wanted or any(found.extent for found in of_workers):
        return None
    sample = _Sample(schema, wanted, sum(found.rows for found in of_workers[: group.rank]))
    for batch in train.batches():
        sample.take(batch)
    present = group.sum(sample.present.astype(np.float64))
    if (present[sample.is_number] * SPARSEST < rows).any():
        return None
    weights = sum(found.weights or 0.0 for found in of_workers)
    batch = sample.batch(present, rows, weights / rows or 1.0)
    return Stored(Summary(batch.rows), lambda: iter([batch]))


@dataclass
class _Sample:
    """What was chosen of this worker's rows so far, the first of which has the number `next_row`.

    `blocks` are the chosen rows: their hashes, features and weights, None without weights. `present` counts
    each feature's values, `few` has the different ones of a feature, None if they are more than `DISTINCT`.
    """

    schema: Schema
    wanted: int
    next_row: int
    blocks: list[tuple[Keys, pa.Table, FloatArray | None]] = field(default_factory=list)
    rows: int = 0

    def __post_init__(self) -> None:
        names = self.schema.names
        self.is_number = np.array([name not in self.schema.categories for name in names], bool)
        self.present = np.zeros(len(names), np.int64)
        self.lowest, self.highest = np.full((2, len(names)), np.nan, np.float32)
        self.few: list[FloatArray | None] = [np.zeros(0, np.float32) for _ in names]

    def take(self, batch: Batch) -> None:
        """Choose from a batch."""
        if isinstance(batch, Sparse):
            raise TypeError("sparse rows are not sampled")
        keys = _hashes(self.next_row, batch.rows)
        self.next_row += batch.rows
        self.rows += batch.rows
        for number in np.flatnonzero(self.is_number):
            self._see(number, batch.features.column(int(number)))
        limits = self._limits(self.present, self.rows)
        chosen = np.flatnonzero(keys < limits.max())
        # Without groups, weights count in the cuts.
        weight = None if "group" in batch.roles else batch.roles.get("weight")
        own = None if weight is None else np.asarray(weight[chosen], np.float32)
        if len(chosen) or not self.blocks:
            self.blocks.append((keys[chosen], batch.features.take(pa.array(chosen)), own))
        if sum(len(block[0]) for block in self.blocks) > 2 * self.rows * limits.max() / HASHES:
            self._drop(limits)

    def batch(self, present: npt.NDArray[np.float64], rows: int, weight: float) -> Dense:
        """Return what was chosen, as the counts of all workers want it; `weight` is the mean one of a row.

        It is one batch: XGBoost's sketch of many small ones takes twice the time.
        """
        limits = self._limits(present, rows)
        self._drop(limits)
        parts = [self._limited(features, keys, limits) for keys, features, _ in self.blocks]
        extremes = self._extremes(parts[0])
        features = pa.concat_tables([*parts, extremes]).combine_chunks()
        weights = [own for _, _, own in self.blocks if own is not None]
        if not weights:
            return Dense(features, {})
        weights.append(np.full(extremes.num_rows, weight, np.float32))
        return Dense(features, {"weight": np.concatenate(weights)})

    def _see(self, number: np.intp, column: pa.ChunkedArray) -> None:
        values = column.to_numpy()
        self.present[number] += np.count_nonzero(values == values)  # noqa: PLR0124 - nan differs from itself
        with np.errstate(invalid="ignore"):
            self.lowest[number] = np.fmin(self.lowest[number], np.fmin.reduce(values, initial=np.nan))
            self.highest[number] = np.fmax(self.highest[number], np.fmax.reduce(values, initial=np.nan))
        known = self.few[number]
        if known is not None:
            found = np.union1d(known, pc.unique(column).drop_null().to_numpy(zero_copy_only=False))
            found = found[~np.isnan(found)]
            self.few[number] = found if len(found) <= DISTINCT else None

    def _limits(self, present: npt.NDArray[np.number], rows: int) -> npt.NDArray[np.float64]:
        """Return below which hash a feature's values are chosen."""
        share = np.minimum(self.wanted / np.maximum(present, 1), MOST_ROWS * self.wanted / max(rows, 1))
        return np.where(self.is_number, np.minimum(share, 1.0), self.wanted / max(rows, 1)) * HASHES

    def _drop(self, limits: npt.NDArray[np.float64]) -> None:
        """Drop the rows that no feature wants any more."""
        kept: list[tuple[Keys, pa.Table, FloatArray | None]] = []
        for keys, features, weights in self.blocks:
            chosen = np.flatnonzero(keys < limits.max())
            if len(chosen) or not kept:
                own = None if weights is None else weights[chosen]
                kept.append((keys[chosen], features.take(pa.array(chosen)), own))
        self.blocks = kept

    def _limited(self, features: pa.Table, keys: Keys, limits: npt.NDArray[np.float64]) -> pa.Table:
        """Return rows without the values that their features do not want."""
        highest = limits.max()
        for number in np.flatnonzero(self.is_number & (limits < highest)):
            column = features.column(int(number))
            kept = pc.if_else(pa.array(keys < limits[number]), column, pa.scalar(None, column.type))
            features = features.set_column(int(number), features.column_names[number], kept)
        return features

    def _extremes(self, like: pa.Table) -> pa.Table:
        """Return rows with the values that must not be missed, each feature's one below the other."""
        columns = [self._kept_values(number, like.column(number)) for number in range(like.num_columns)]
        rows = max(len(column) for column in columns)
        padded = [pa.concat_arrays([column, pa.nulls(rows - len(column), column.type)]) for column in columns]
        return pa.table(padded, like.column_names)

    def _kept_values(self, number: int, like: pa.ChunkedArray) -> pa.Array:
        if not self.is_number[number]:
            words = like.chunk(0).dictionary if like.num_chunks else pa.array([], like.type.value_type)
            codes = pa.array(np.arange(len(words)), like.type.index_type)
            return pa.DictionaryArray.from_arrays(codes, words)
        few = self.few[number]
        values = np.array([self.lowest[number], self.highest[number]], np.float32) if few is None else few
        return pa.array(values[~np.isnan(values)], pa.float32())


def _hashes(first: int, count: int) -> Keys:
    """Return the hashes of row numbers, no two of which are alike below 2^32 (MurmurHash3's mixer)."""
    keys = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32)
    keys ^= keys >> np.uint32(16)
    keys *= np.uint32(0x85EBCA6B)
    keys ^= keys >> np.uint32(13)
    keys *= np.uint32(0xC2B2AE35)
    keys ^= keys >> np.uint32(16)
    return keys
