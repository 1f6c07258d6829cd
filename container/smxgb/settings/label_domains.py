"""Labels: a summary of the labels of some rows, and the labels that objectives and metrics take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DISTINCT = 20
"""The different labels of some rows are listed if there are at most this many."""


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
class Domain:
    """The labels that an objective or a metric takes: a test of some rows' labels, and the rule in words."""

    holds: Callable[[Labels], bool]
    rule: str


HIGHEST_GRADE = 31
"""The gain of a grade is 2^grade - 1, which XGBoost keeps in 32 bits."""

PROBABILITY = Domain(lambda labels: labels.lowest >= 0 and labels.highest <= 1, "a number from 0 to 1")
BINARY = Domain(lambda labels: set(labels.different or [math.nan]) <= {0.0, 1.0}, "0 or 1")
CLASS = Domain(lambda labels: labels.whole and labels.lowest >= 0, "a whole number from 0 to num_class - 1")
WHOLE_GRADE = Domain(lambda labels: labels.whole and labels.lowest >= 0, "a grade, a whole number >= 0")
GRADE = Domain(lambda labels: labels.lowest >= 0, "a grade >= 0")
GAINED = Domain(
    lambda labels: labels.whole and 0 <= labels.lowest <= labels.highest <= HIGHEST_GRADE,
    "a grade, a whole number from 0 to 31 (any, with ndcg_exp_gain=false)",
)
NOT_NEGATIVE = Domain(lambda labels: labels.lowest >= 0, "a number >= 0")
POSITIVE = Domain(lambda labels: labels.lowest > 0, "a number > 0")
ABOVE_MINUS_1 = Domain(lambda labels: labels.lowest > -1, "a number > -1")
