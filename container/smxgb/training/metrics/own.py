"""The metrics that XGBoost lacks, or computes wrongly: each from weighted sums that add up over all rows.

A metric is an entry of `OWN`: how the rows of a worker are tallied, and its value from the added sums of all
workers. Each value is scikit-learn's: accuracy_score, balanced_accuracy_score, f1_score, precision_score,
recall_score (with zero_division=0), r2_score, mean_squared_error and log_loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from smxgb.training.metrics.problem import Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor, Future

    from smxgb.training.metrics.problem import Problem

type Numbers = npt.NDArray[np.float32] | npt.NDArray[np.float64]
type Sums = npt.NDArray[np.float64]

_NOTHING = np.zeros(0, np.float32)

BLOCK = 1 << 16
"""Rows that are tallied at a time, so that what is computed of each row stays in a processor's cache."""


@dataclass(frozen=True)
class Computation:
    """How a metric is computed.

    `tally` returns the sums of some rows, whose shape depends on the problem alone. `value` returns the
    metric from the added sums of all rows; nan without any rows or weight.
    """

    tally: Callable[[Problem, Numbers, Truth], Sums]
    value: Callable[[Sums], float]


class OwnMetrics:
    """Computes the metrics `names` of `OWN` for a problem. Metrics with the same tally share its sums."""

    def __init__(self, names: Sequence[str], problem: Problem) -> None:
        self._computations = {name: OWN[name] for name in names}
        self._problem = problem
        # In the order of the table: how sums are added must not depend on the order of the names.
        self._tallies = tuple(dict.fromkeys(OWN[name].tally for name in OWN if name in self._computations))

    @property
    def names(self) -> Sequence[str]:
        """The metrics in their order."""
        return tuple(self._computations)

    def start_sums(self, prediction: Numbers, truth: Truth, pool: Executor) -> list[Future[Sums]]:
        """Begin to compute the sums of some rows, block by block; those of all blocks are to be added.

        Each is a flat array whose length depends on the job alone. `prediction` is what `Booster.predict`
        returns: (rows,), or (rows, classes) for multi:softprob.
        """
        if not self._tallies:
            return []
        # Of no rows there is one block too.
        blocks = [slice(start, start + BLOCK) for start in range(0, max(1, len(truth.label)), BLOCK)]
        return [pool.submit(self.sums, prediction[block], truth.rows(block)) for block in blocks]

    def sums(self, prediction: Numbers, truth: Truth) -> Sums:
        """Return the sums of some rows."""
        parts = [tally(self._problem, prediction, truth).ravel() for tally in self._tallies]
        return np.concatenate(parts) if parts else np.zeros(0)

    def values(self, sums: Sums) -> dict[str, float]:
        """Return each metric's value from the added sums of all rows; nan without any rows or weight.

        As in scikit-learn, precision, recall and f1 are 0 for a class that is never predicted, and r2 of
        labels that are all equal is 1 for a perfect prediction, else 0.
        """
        parts = {}
        for tally in self._tallies:
            empty = tally(self._problem, _NOTHING, Truth(_NOTHING))
            parts[tally], sums = sums[: empty.size].reshape(empty.shape), sums[empty.size :]
        return {name: each.value(parts[each.tally]) for name, each in self._computations.items()}


def _confusion(problem: Problem, prediction: Numbers, truth: Truth) -> Sums:
    """Return the weight of each pair of classes: (true class, predicted class)."""
    cells = truth.label.astype(np.intp) * problem.classes + _predicted_classes(problem, prediction)
    counts = np.bincount(cells, weights=truth.weight, minlength=problem.classes**2)
    return counts.astype(np.float64).reshape(problem.classes, problem.classes)


def _predicted_classes(problem: Problem, prediction: Numbers) -> npt.NDArray[np.intp]:
    if prediction.ndim > 1:
        return prediction.argmax(axis=1)
    if problem.is_multi_class:
        return prediction.astype(np.intp)
    # logitraw predicts the log-odds; the other objectives a probability, or the class itself.
    threshold = 0.0 if problem.objective == "binary:logitraw" else 0.5
    return (prediction > threshold).astype(np.intp)


def _moments(problem: Problem, prediction: Numbers, truth: Truth) -> Sums:
    """Return the sums of weight, centred label, its square, and the squared error.

    Squares of labels far from 0 would lose the digits that r2 needs, so the labels are centred first.
    """
    centred = truth.label.astype(np.float64) - problem.centre
    error = truth.label.astype(np.float64) - prediction.astype(np.float64)
    weights = truth.weights
    return np.array([weights.sum(), weights @ centred, weights @ centred**2, weights @ error**2])


def _losses(_: Problem, log_odds: Numbers, truth: Truth) -> Sums:
    """Return the sums of weight and logarithmic loss of log-odds, the predictions of binary:logitraw."""
    odds = log_odds.astype(np.float64)
    weights = truth.weights
    return np.array([weights.sum(), weights @ (np.logaddexp(0, odds) - truth.label * odds)])


def _ratio(part: Sums, whole: Sums) -> Sums:
    """Divide; 0 where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def _accuracy(confusion: Sums) -> float:
    total = confusion.sum()
    return float(np.trace(confusion) / total) if total > 0 else float("nan")


def _recalls(confusion: Sums) -> Sums:
    return _ratio(np.diagonal(confusion), confusion.sum(axis=1))


def _precisions(confusion: Sums) -> Sums:
    return _ratio(np.diagonal(confusion), confusion.sum(axis=0))


def _f1s(confusion: Sums) -> Sums:
    return _ratio(2 * np.diagonal(confusion), confusion.sum(axis=0) + confusion.sum(axis=1))


def _macro(of_classes: Callable[[Sums], Sums]) -> Callable[[Sums], float]:
    """Average over the classes that occur, among the labels or the predictions."""

    def value(confusion: Sums) -> float:
        occurs = confusion.sum(axis=0) + confusion.sum(axis=1) > 0
        return float(of_classes(confusion)[occurs].mean()) if occurs.any() else float("nan")

    return value


def _of_positives(of_classes: Callable[[Sums], Sums]) -> Callable[[Sums], float]:
    def value(confusion: Sums) -> float:
        return float(of_classes(confusion)[1]) if confusion.sum() > 0 else float("nan")

    return value


def _balanced_accuracy(confusion: Sums) -> float:
    occurs = confusion.sum(axis=1) > 0
    return float(_recalls(confusion)[occurs].mean()) if occurs.any() else float("nan")


def _mse(moments: Sums) -> float:
    weight, _, _, squared_error = moments
    return float(squared_error / weight) if weight > 0 else float("nan")


def _logloss(losses: Sums) -> float:
    weight, loss = losses
    return float(loss / weight) if weight > 0 else float("nan")


def _r2(moments: Sums) -> float:
    weight, total, squares, squared_error = moments
    if weight <= 0:
        return float("nan")
    spread = squares - total**2 / weight
    if spread <= 0:
        return 1.0 if squared_error == 0 else 0.0
    return float(1 - squared_error / spread)


OWN: Mapping[str, Computation] = {
    "accuracy": Computation(_confusion, _accuracy),
    "balanced_accuracy": Computation(_confusion, _balanced_accuracy),
    "f1": Computation(_confusion, _macro(_f1s)),
    "f1_binary": Computation(_confusion, _of_positives(_f1s)),
    "f1_macro": Computation(_confusion, _macro(_f1s)),
    "precision": Computation(_confusion, _of_positives(_precisions)),
    "precision_macro": Computation(_confusion, _macro(_precisions)),
    "precision_micro": Computation(_confusion, _accuracy),
    "recall": Computation(_confusion, _of_positives(_recalls)),
    "recall_macro": Computation(_confusion, _macro(_recalls)),
    "recall_micro": Computation(_confusion, _accuracy),
    "mse": Computation(_moments, _mse),
    "r2": Computation(_moments, _r2),
    "logloss": Computation(_losses, _logloss),
}
"""Metric -> its computation.

Each row has one true and one predicted class, so the micro averages of precision and recall are the accuracy.
`logloss` is XGBoost's own but for binary:logitraw, whose log-odds XGBoost takes for probabilities.
"""
