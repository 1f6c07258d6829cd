"""What is remarkable in the columns of `train`: which columns still may be, after each batch.

Most columns are plain after the first rows: a value is not whole, or does not follow the label. Only the
others are looked at further, so that the rows cost next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.rows import FloatArray

FIRST_ROWS = 1_000
"""Rows in which a column is looked at before all of the batch are."""

LEAST = 20
"""Fewer rows, or rows of a class, follow a label by chance."""

DETERMINED = 1e-6
"""The share of the label's variance that a feature leaves, if it all but is the label."""

EXACTLY = 1e-11
"""The share that it leaves if it is the label: float32's rounding leaves some 1e-14."""


@dataclass(frozen=True)
class Moments:
    """How a feature and the label vary: rows with a value, means, and sums of squares and of products.

    Two of them are merged as in Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for
    computing sample variances, 1979.
    """

    rows: int
    feature: float
    label: float
    feature_squares: float
    label_squares: float
    products: float

    @classmethod
    def of(cls, feature: FloatArray, label: FloatArray) -> Moments:
        """Return the moments of two arrays without missing values, of one length above 0."""
        # From the first values on, so that the sums of a constant are exactly 0.
        xs, ys = feature.astype(np.float64) - feature[0], label.astype(np.float64) - label[0]
        x, y = float(xs.mean()), float(ys.mean())
        xs -= x
        ys -= y
        means = float(feature[0]) + x, float(label[0]) + y
        return cls(len(xs), *means, float(xs @ xs), float(ys @ ys), float(xs @ ys))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        rows = self.rows + other.rows
        part = other.rows / rows
        dx, dy = other.feature - self.feature, other.label - self.label
        weight = self.rows * part
        return Moments(
            rows,
            self.feature + dx * part,
            self.label + dy * part,
            self.feature_squares + other.feature_squares + dx * dx * weight,
            self.label_squares + other.label_squares + dy * dy * weight,
            self.products + other.products + dx * dy * weight,
        )

    @property
    def may_determine(self) -> bool:
        """Whether the label may be a linear function of the feature, so far."""
        if not self.feature_squares or not self.label_squares:
            return self.feature_squares == self.label_squares
        return self._left < DETERMINED

    @property
    def determines(self) -> bool:
        """Whether the label is a linear function of the feature, or all but is."""
        return self.rows >= LEAST and bool(self.label_squares) and self.may_determine

    @property
    def is_exact(self) -> bool:
        """Whether a linear function leaves nothing of the label."""
        return self._left < EXACTLY

    @property
    def _left(self) -> float:
        """The share of the label's variance that a linear function of the feature leaves."""
        return 1 - self.products**2 / (self.feature_squares * self.label_squares)


@dataclass(frozen=True)
class Range:
    """The lowest and highest value of a feature in the rows of one class, and how many rows have one."""

    rows: int
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: FloatArray) -> Range | None:
        """Return the range of values of which none is missing."""
        return cls(len(values), float(values.min()), float(values.max())) if len(values) else None

    def merge(self, other: Range | None) -> Range:
        """Return the range of both."""
        if other is None:
            return self
        return Range(self.rows + other.rows, min(self.lowest, other.lowest), max(self.highest, other.highest))


@dataclass(frozen=True)
class Classes:
    """The ranges of a feature in the rows of two classes; None for a class without a row."""

    first: Range | None
    second: Range | None

    @classmethod
    def of(cls, feature: FloatArray, is_second: npt.NDArray[np.bool_]) -> Classes:
        """Return the ranges of a feature without missing values."""
        return cls(Range.of(feature[~is_second]), Range.of(feature[is_second]))

    def merge(self, other: Classes) -> Classes:
        """Return the ranges of both."""
        first = self.first.merge(other.first) if self.first else other.first
        second = self.second.merge(other.second) if self.second else other.second
        return Classes(first, second)

    @property
    def may_determine(self) -> bool:
        """Whether some value of the feature may part the classes (an auc of 0 or 1), so far."""
        if self.first is None or self.second is None:
            return True
        return self.first.highest < self.second.lowest or self.second.highest < self.first.lowest

    @property
    def determines(self) -> bool:
        """Whether some value of the feature parts the classes."""
        if self.first is None or self.second is None:
            return False
        return min(self.first.rows, self.second.rows) >= LEAST and self.may_determine

    @property
    def is_exact(self) -> bool:
        """That a value parts the classes, if one does."""
        return True


@dataclass(frozen=True)
class Column:
    """What may be remarkable in a numeric column that has a value; None is what is plain already.

    `largest` is the largest absolute value while the first rows of all batches are whole. `relation` is that
    to the label.
    """

    largest: float | None
    relation: Moments | Classes | None

    def merge(self, other: Column) -> Column:
        """Return what the rows of both show."""
        largest = None if self.largest is None or other.largest is None else max(self.largest, other.largest)
        return Column(largest, _merged(self.relation, other.relation))

    @property
    def is_plain(self) -> bool:
        """Whether nothing can be remarkable any more."""
        return self.largest is None and self.relation is None


@dataclass(frozen=True)
class Category:
    """A column of categories: how many rows have one, and how many have none.

    `labels` counts the rows of each label, in their order, by the code of their category; it is empty if
    there are too many labels or categories, or none was asked for.
    """

    present: int
    missing: int
    labels: tuple[tuple[int, ...], ...] = ()

    def merge(self, other: Category) -> Category:
        """Return the counts of both."""
        return Category(
            self.present + other.present,
            self.missing + other.missing,
            tuple(
                tuple(map(sum, zip(mine, others, strict=True)))
                for mine, others in zip(self.labels, other.labels, strict=True)
            ),
        )

    @property
    def determines(self) -> bool:
        """Whether each category has one label only, and several labels have enough rows with a category."""
        is_pure = all(sum(map(bool, of_labels)) <= 1 for of_labels in zip(*self.labels, strict=True))
        counts = [sum(of_categories) for of_categories in self.labels]
        return is_pure and sum(count >= LEAST for count in counts) > 1 and min(counts) > 0

    @property
    def missing_share(self) -> float:
        """The share of the rows that have no category, 0 to 1."""
        return self.missing / (self.present + self.missing)


def look(
    values: FloatArray, label: FloatArray | None, parted: float | None, *, whole: bool = True
) -> Column | None:
    """Return what some rows of a column show; None if none has a value.

    Args:
        values: The column, NaN where a value is missing.
        label: The labels of the rows; None if the relation to them is not asked for.
        parted: The higher one of the two labels of `train`; None if it has others.
        whole: Whether whole numbers are asked for.
    """
    if not len(values):
        return None
    lowest, highest = float(values.min()), float(values.max())
    if math.isnan(lowest):
        is_there = ~np.isnan(values)
        return look(values[is_there], None if label is None else label[is_there], parted, whole=whole)
    relation: Moments | Classes | None = None
    if label is not None:
        relation = (
            Moments.of(values, label) if parted is None else Classes.of(values, label == np.float32(parted))
        )
    # Above 2^23 a float32 has no fraction, so the first rows tell as much as all.
    first = values[:FIRST_ROWS]
    is_whole = whole and bool((first == np.rint(first)).all())
    return Column(
        max(abs(lowest), abs(highest)) if is_whole else None,
        relation if relation and relation.may_determine else None,
    )


def _merged(one: Moments | Classes | None, other: Moments | Classes | None) -> Moments | Classes | None:
    if isinstance(one, Moments) and isinstance(other, Moments):
        both: Moments | Classes = one.merge(other)
    elif isinstance(one, Classes) and isinstance(other, Classes):
        both = one.merge(other)
    else:
        return None
    return both if both.may_determine else None
