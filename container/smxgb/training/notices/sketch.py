"""The sketch of a channel's rows: a sample of them that tells whether two channels have rows in common.

Of the hashes of all rows the smallest are kept. Two sketches hold the same part of all possible hashes, so
that what they have in common tells what the channels have in common (Broder, On the resemblance and
containment of documents, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.rows import Sparse

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.rows import Batch

    type Hashes = npt.NDArray[np.uint64]

KEPT = 4_096
"""Hashes of a sketch."""

FACTORS = tuple(np.uint64(factor) for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The constants of SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom generators, 2014)."""


@dataclass(frozen=True)
class Sketch:
    """The smallest hashes of rows, ascending, and how many rows have each; all of them if there are few."""

    hashes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of the rows of both."""
        hashes = np.array([*self.hashes, *other.hashes], np.uint64)
        return Sketch(*_listed(*_smallest(hashes, np.array([*self.counts, *other.counts], np.int64))))

    @property
    def limit(self) -> int:
        """The highest hash up to which all hashes are kept."""
        return self.hashes[-1] if len(self.hashes) == KEPT else (1 << 64) - 1

    @property
    def repeated(self) -> float:
        """The share of the rows that are there more than once, 0 to 1."""
        return sum(count for count in self.counts if count > 1) / max(1, sum(self.counts))

    def rows_in(self, other: Sketch) -> tuple[int, int]:
        """Return how many of these rows are among those of another sketch, and of how many that is told."""
        limit = min(self.limit, other.limit)
        known = set(other.hashes)
        compared = [(one, n) for one, n in zip(self.hashes, self.counts, strict=True) if one <= limit]
        return sum(n for one, n in compared if one in known), sum(n for _, n in compared)


class Sketcher:
    """Makes the sketch of rows that it is given batch by batch."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)

    def take(self, batch: Batch) -> None:
        """Take a batch's rows into account."""
        hashes = row_hashes(batch)
        if len(self._hashes) == KEPT:
            hashes = hashes[hashes <= self._hashes[-1]]
        if len(hashes):
            counts = np.concatenate([self._counts, np.ones(len(hashes), np.int64)])
            self._hashes, self._counts = _smallest(np.concatenate([self._hashes, hashes]), counts)

    @property
    def sketch(self) -> Sketch:
        """The sketch of the rows so far."""
        return Sketch(*_listed(self._hashes, self._counts))


def row_hashes(batch: Batch) -> Hashes:
    """Return a hash of each row, of its features and its label."""
    hashes = _of_sparse(batch) if isinstance(batch, Sparse) else _of_columns(batch.features.columns)
    label = batch.roles.get("label")
    if label is not None:
        hashes += _bits(label) * FACTORS[0]
    # The last steps of SplitMix64: each bit of the sum changes all bits of the hash.
    hashes ^= hashes >> np.uint64(30)
    hashes *= FACTORS[1]
    hashes ^= hashes >> np.uint64(27)
    hashes *= FACTORS[2]
    return hashes ^ (hashes >> np.uint64(31))


def _of_columns(columns: list[pa.ChunkedArray]) -> Hashes:
    factors = _factors(np.arange(len(columns), dtype=np.uint64))
    hashes = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    for column, factor in zip(columns, factors, strict=True):
        if pa.types.is_dictionary(column.type):
            codes = pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int32())
            bits = pc.fill_null(codes, -1).to_numpy().view(np.uint32)
        else:
            bits = _bits(column.to_numpy())
        hashes += np.multiply(bits, factor, dtype=np.uint64)
    return hashes


def _of_sparse(batch: Sparse) -> Hashes:
    factors = _factors(batch.indices.astype(np.uint64))
    sums = np.zeros(len(factors) + 1, np.uint64)
    np.cumsum(_bits(batch.values) * factors, out=sums[1:])
    return np.asarray(np.diff(sums[batch.offsets]), np.uint64)


def _factors(positions: Hashes) -> Hashes:
    """Return an odd number for each feature."""
    factors = (positions + np.uint64(2)) * FACTORS[0]
    factors ^= factors >> np.uint64(29)
    return factors * FACTORS[2] | np.uint64(1)


def _bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def _smallest(hashes: Hashes, counts: npt.NDArray[np.int64]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    kept, places = np.unique(hashes, return_inverse=True)
    together = np.bincount(places, weights=counts, minlength=len(kept)).astype(np.int64)
    return kept[:KEPT], together[:KEPT]


def _listed(hashes: Hashes, counts: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(hashes.tolist()), tuple(counts.tolist())
