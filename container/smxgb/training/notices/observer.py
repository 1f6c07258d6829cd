"""The observer of a channel: looks at each batch of the first pass that builds the channel's matrix."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads it
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from smxgb.rows import Sparse
from smxgb.training.notices.columns import FIRST_ROWS, Category, Column, look
from smxgb.training.notices.sketch import Sketch, Sketcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.rows import Batch, FloatArray, Schema, Stored
    from smxgb.settings import Labels

MOST_SPARSE = 2_000
"""Columns of sparse rows are looked at if there are no more."""

MOST_CATEGORIES, MOST_LABELS = 50, 10
"""Categories whose labels are counted, and different labels of which they are: each costs a pass."""


@dataclass(frozen=True)
class LabelSums:
    """Sums over labels: rows, labels, and their squares.

    `highest` counts the rows with the higher one of two labels, `outside` those whose label is below the
    lowest or above the highest one of `train`.
    """

    rows: int
    labels: float
    squares: float
    highest: int
    outside: int

    def merge(self, other: LabelSums) -> LabelSums:
        """Return the sums over the rows of both."""
        return LabelSums(
            self.rows + other.rows,
            self.labels + other.labels,
            self.squares + other.squares,
            self.highest + other.highest,
            self.outside + other.outside,
        )


@dataclass(frozen=True)
class Observed:
    """What was seen of the rows of a channel.

    Columns and categories are by the position of their feature; the columns are those of `train` only.
    """

    labels: LabelSums | None = None
    columns: Mapping[int, Column] = field(default_factory=dict)
    categories: Mapping[int, Category] = field(default_factory=dict)
    sketch: Sketch = field(default_factory=Sketch)

    def merge(self, other: Observed) -> Observed:
        """Return what was seen of the rows of both."""
        labels = (
            self.labels.merge(other.labels) if self.labels and other.labels else self.labels or other.labels
        )
        columns, categories = dict(self.columns), dict(self.categories)
        for position, column in other.columns.items():
            columns[position] = columns[position].merge(column) if position in columns else column
        for position, category in other.categories.items():
            known = categories.get(position)
            categories[position] = known.merge(category) if known else category
        return Observed(labels, columns, categories, self.sketch.merge(other.sketch))


OBSERVED = TypeAdapter(dict[str, Observed])


class Observer:
    """Looks at the rows of a channel while they are read.

    Args:
        schema: The features.
        label: The labels of all rows of `train`, None if they have none.
        of_train: Whether the columns are looked at.
        compared: Whether the rows are to be compared with those of another channel.
    """

    def __init__(self, schema: Schema, label: Labels | None, *, of_train: bool, compared: bool) -> None:
        self._schema = schema
        self._label = label
        self._different = label.different or () if label else ()
        self._two = self._different if len(self._different) == 2 else None  # noqa: PLR2004 - two classes
        self._varies = label is not None and label.lowest < label.highest
        self._of_train = of_train
        self._compared = compared
        self._begin()
        self.observed = Observed()

    def watch(self, stored: Stored) -> Stored:
        """Return the channel, the first whole pass over which is looked at."""
        if not stored.rows:  # what it yields is made for XGBoost
            return stored
        is_done = False

        def batches() -> Iterator[Batch]:
            nonlocal is_done
            if is_done:
                yield from stored.batches()
                return
            self._begin()
            for batch in stored.batches():
                self._take(batch)
                yield batch
            is_done = True
            self.observed = Observed(self._labels, self._columns, self._categories, self._sketcher.sketch)

        return replace(stored, batches=batches)

    def _begin(self) -> None:
        self._labels: LabelSums | None = None
        self._columns: dict[int, Column] = {}
        self._categories: dict[int, Category] = {}
        self._sketcher = Sketcher()

    def _take(self, batch: Batch) -> None:
        label = batch.roles.get("label")
        if label is not None and batch.rows:
            sums = self._sums(label)
            self._labels = self._labels.merge(sums) if self._labels else sums
        if self._compared:
            self._sketcher.take(batch)
        related = label if self._varies and self._of_train else None
        if isinstance(batch, Sparse):
            if self._of_train:
                self._look_at_sparse(batch, related)
        else:
            for position, column in enumerate(batch.features.columns):
                if pa.types.is_dictionary(column.type):
                    self._count(position, column, related)
                elif self._of_train and not self._is_plain(position):
                    self._look(position, column.to_numpy(), related)

    def _sums(self, label: FloatArray) -> LabelSums:
        exact = label.astype(np.float64)
        highest = np.count_nonzero(label == np.float32(self._two[1])) if self._two else 0
        low, high = (self._label.lowest, self._label.highest) if self._label else (0.0, 0.0)
        outside = np.count_nonzero((label < np.float32(low)) | (label > np.float32(high)))
        return LabelSums(len(label), float(exact.sum()), float(exact @ exact), int(highest), int(outside))

    def _is_plain(self, position: int) -> bool:
        known = self._columns.get(position)
        return known is not None and known.is_plain

    def _look(self, position: int, values: FloatArray, label: FloatArray | None) -> None:
        """Look at the values of a column, and the labels of their rows."""
        parted = self._two[1] if self._two else None
        known = self._columns.get(position)
        asked = known
        if known is None and len(values) > FIRST_ROWS:
            # Most columns are plain at once.
            first = None if label is None else label[:FIRST_ROWS]
            asked = look(values[:FIRST_ROWS], first, parted)
            if asked is not None and asked.is_plain:
                self._columns[position] = asked
                return
        found = look(
            values,
            None if asked is not None and asked.relation is None else label,
            parted,
            whole=asked is None or asked.largest is not None,
        )
        if found is not None:
            self._columns[position] = found if known is None else known.merge(found)

    def _look_at_sparse(self, batch: Sparse, label: FloatArray | None) -> None:
        if len(self._schema.names) > MOST_SPARSE:
            return
        indices, values = batch.indices, batch.values
        rows = np.repeat(np.arange(batch.rows), np.diff(batch.offsets))
        first = np.unique(indices[: batch.offsets[min(FIRST_ROWS, batch.rows)]])
        for position in first.tolist() if not self._columns else list(self._columns):
            if not self._is_plain(position):
                places = np.flatnonzero(indices == position)
                self._look(position, values[places], None if label is None else label[rows[places]])

    def _count(self, position: int, column: pa.ChunkedArray, label: FloatArray | None) -> None:
        codes = pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int32())
        found = Category(len(column) - codes.null_count, codes.null_count)
        size = len(self._schema.categories[self._schema.names[position]])
        if label is not None and size <= MOST_CATEGORIES and len(self._different) <= MOST_LABELS:
            places = pc.fill_null(codes, size).to_numpy()
            counts = [
                np.bincount(places[label == np.float32(value)], minlength=size + 1)[:size]
                for value in self._different
            ]
            found = replace(found, labels=tuple(tuple(count.tolist()) for count in counts))
        known = self._categories.get(position)
        self._categories[position] = known.merge(found) if known else found
