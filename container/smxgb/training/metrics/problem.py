"""The problem that a job's model is to solve, and the truth that its predictions are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from smxgb.settings import kind_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.settings import Objective


@dataclass(frozen=True)
class Problem:
    """What a job predicts.

    `classes` is the number of classes, 2 for a binary objective; regression ignores it. `centre` is a number
    near the labels' mean, the same on all workers. `has_queries` says that the rows belong to queries.
    """

    objective: Objective
    classes: int = 2
    centre: float = 0.0
    has_queries: bool = False

    @property
    def is_multi_class(self) -> bool:
        """Whether the objective is one of several classes, multi:softmax or multi:softprob."""
        return kind_of(self.objective) == "multi-class"


@dataclass(frozen=True)
class Truth:
    """The labels of some rows, (rows,), and their weights, (rows,), None where all rows count the same.

    Labels of a classification are whole numbers from 0 to classes - 1. Small whole numbers may be bytes.
    """

    label: npt.NDArray[np.float32] | npt.NDArray[np.int8]
    weight: npt.NDArray[np.float32] | None = None

    @cached_property
    def is_fractional(self) -> bool:
        """Whether a label lies between 0 and 1."""
        return bool(np.any((self.label > 0) & (self.label < 1)))

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """The weight of each row, 1 where all rows count the same."""
        return np.ones(len(self.label)) if self.weight is None else self.weight.astype(np.float64)

    def rows(self, chosen: slice | npt.NDArray[np.intp]) -> Truth:
        """Return the labels and weights of a part of the rows."""
        return Truth(self.label[chosen], None if self.weight is None else self.weight[chosen])
