"""Summaries: what a pass over rows has seen of them, small enough to be told to all workers."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads it, and the roles
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.rows.batch import Dense, Sparse
from smxgb.rows.categories import used
from smxgb.rows.roles import RoleName  # noqa: TC001
from smxgb.settings import DISTINCT, Labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from smxgb.rows.batch import Batch, FloatArray

LOOKED_AT = 16_384
"""Rows that tell how many different values a column has."""


@dataclass(frozen=True)
class Extent:
    """The lowest and highest index of sparse rows, as their files count; None where no value is present.

    `width` is the most features that a file says it has, 0 if none says so. `labels_ascend` says that each
    row's label is below its first index, as an index would be that stands before it.
    """

    lowest: int | None
    highest: int | None
    width: int = 0
    labels_ascend: bool = True

    def merge(self, other: Extent) -> Extent:
        """Return the extent of both."""
        return Extent(
            _both(min, self.lowest, other.lowest),
            _both(max, self.highest, other.highest),
            max(self.width, other.width),
            self.labels_ascend and other.labels_ascend,
        )


@dataclass(frozen=True)
class Summary:
    """What a pass over rows has seen.

    `dropped` rows had no valid label. `label` is None if there is no row or no label. `present` counts the
    feature cells with a value, None if the pass read no features. `weights` is the sum of the weights, None
    if the rows have none. `columns` is the number of features of dense rows, `extent` that of sparse ones;
    each is None if there are no such rows. `categories` has those that occur, by the name of their feature.
    `roles` are what the rows have beside features. `classes` are labels that are words, in the order of the
    codes that this worker gave them, with the rows of each.
    """

    rows: int = 0
    dropped: int = 0
    label: Labels | None = None
    present: int | None = 0
    weights: float | None = None
    columns: int | None = None
    extent: Extent | None = None
    categories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    roles: frozenset[RoleName] = frozenset()
    classes: Mapping[str, int] = field(default_factory=dict)

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
            {
                word: self.classes.get(word, 0) + other.classes.get(word, 0)
                for word in {**self.classes, **other.classes}
            },
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


def count_bins(batch: Batch, most: int) -> int:
    """Return how many histogram bins the features of a batch have together: its values, at most `most` each.

    Only the first `LOOKED_AT` rows are looked at.
    """
    features = batch.features.slice(0, LOOKED_AT)
    if isinstance(batch, Sparse):
        looked = replace(batch, features=features)
        pairs = looked.indices.astype(np.int64) << 32 | looked.values.view(np.uint32)
        _, different = np.unique(np.unique(pairs) >> 32, return_counts=True)
        return int(np.minimum(different, most).sum())
    return sum(
        len(column.chunk(0).dictionary)
        if pa.types.is_dictionary(column.type) and column.num_chunks
        else min(most, pc.count_distinct(column).as_py())
        for column in features.columns
    )


def summarise(batch: Batch, known: Labels | None = None) -> Summary:
    """Return the summary of one batch; `known` are labels seen before, which are quicker to look for."""
    labels = None
    label, weight = batch.roles.get("label"), batch.roles.get("weight")
    if label is not None and batch.rows:
        labels = Labels(
            float(label.min()),
            float(label.max()),
            bool((label == np.floor(label)).all()),
            _different(label, () if known is None else known.different),
        )
    return Summary(
        batch.rows,
        batch.dropped,
        labels,
        _present(batch),
        None if weight is None else float(weight.sum(dtype=np.float64)),
        batch.features.num_columns if isinstance(batch, Dense) else None,
        _extent(batch) if isinstance(batch, Sparse) else None,
        {} if isinstance(batch, Sparse) else _categories(batch),
        frozenset(batch.roles),
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
    return Extent(int(indices.min()), int(indices.max()), batch.width, _labels_ascend(batch))


def _labels_ascend(batch: Sparse) -> bool:
    label = batch.roles.get("label")
    if label is None:
        return False
    held = np.flatnonzero(np.diff(batch.offsets))
    return bool((label[held] < batch.indices[batch.offsets[held]]).all())


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
