"""The metrics that XGBoost does not have, as weighted sums that add up over batches and workers.

A worker tallies its rows, the sums of all workers are added, and every worker gets the same value from them.
Each value is scikit-learn's: accuracy_score, balanced_accuracy_score, f1_score, precision_score, recall_score
(with zero_division=0), r2_score and mean_squared_error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.settings import METRICS, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from smxgb.settings import Objective

    type Numbers = npt.NDArray[np.float32] | npt.NDArray[np.float64]
    type Sums = npt.NDArray[np.float64]


MOMENTS = 4
LOSSES = 2
"""How many sums there are of each sort."""


@dataclass(frozen=True)
class OwnMetrics:
    """Tallies the container's own metrics `names` for an objective.

    `classes` is the number of classes, 2 for a binary objective; regression ignores it. `centre` is a number
    near the labels' mean, the same on all workers: the sums of squares are taken around it, so that r2 stays
    exact for labels far from 0.
    """

    objective: Objective
    names: Sequence[str]
    classes: int = 2
    centre: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a metric that is not the container's, or not defined for the objective."""
        kind = kind_of(self.objective)
        for name in self.names:
            if name in _BY_ODDS and self.objective == "binary:logitraw":
                continue
            if METRICS[name].source != "container" or kind not in METRICS[name].fits:
                raise ValueError(f"{name} is not the container's to compute for {self.objective}")

    def sums(self, prediction: Numbers, label: Numbers, weight: Numbers | None) -> Sums:
        """Return the sums of some rows, a flat array whose length depends on the job alone.

        `prediction` is what `Booster.predict` returns: (rows,), or (rows, classes) for multi:softprob.
        `label` is (rows,), for classes whole numbers from 0 to classes - 1; `weight` is (rows,), None for
        all ones.
        """
        parts = []
        if self._by_class:
            parts.append(self._confusion(prediction, label, weight))
        if self._by_distance:
            parts.append(self._moments(prediction, label, weight))
        if self._by_odds:
            parts.append(_losses(prediction, label, weight))
        return np.concatenate(parts) if parts else np.zeros(0)

    def values(self, sums: Sums) -> dict[str, float]:
        """Return each metric's value from the added sums of all rows; nan without any rows or weight.

        As in scikit-learn, precision, recall and f1 are 0 for a class that is never predicted, and r2 of
        labels that are all equal is 1 for a perfect prediction, else 0.
        """
        cells = self.classes**2 if self._by_class else 0
        confusion = sums[:cells].reshape(self.classes, self.classes) if cells else np.zeros((0, 0))
        moments, losses = sums[cells : cells + MOMENTS], sums[-LOSSES:]
        values = {}
        for name in self.names:
            if name in _BY_CLASS:
                values[name] = _BY_CLASS[name](confusion)
            elif name in _BY_DISTANCE:
                values[name] = _BY_DISTANCE[name](moments)
            else:
                values[name] = _BY_ODDS[name](losses)
        return values

    @property
    def _by_class(self) -> bool:
        return any(name in _BY_CLASS for name in self.names)

    @property
    def _by_distance(self) -> bool:
        return any(name in _BY_DISTANCE for name in self.names)

    @property
    def _by_odds(self) -> bool:
        return any(name in _BY_ODDS for name in self.names)

    def _confusion(self, prediction: Numbers, label: Numbers, weight: Numbers | None) -> Sums:
        """Return the weight of each pair of true and predicted class, the true one first."""
        cells = label.astype(np.intp) * self.classes + self._predicted_classes(prediction)
        counts = np.bincount(cells, weights=weight, minlength=self.classes**2)
        return counts.astype(np.float64)

    def _predicted_classes(self, prediction: Numbers) -> npt.NDArray[np.intp]:
        if prediction.ndim > 1:
            return prediction.argmax(axis=1)
        if kind_of(self.objective) == "multi-class":
            return prediction.astype(np.intp)
        # logitraw predicts the log-odds; the others a probability, or the class itself.
        threshold = 0.0 if self.objective == "binary:logitraw" else 0.5
        return (prediction > threshold).astype(np.intp)

    def _moments(self, prediction: Numbers, label: Numbers, weight: Numbers | None) -> Sums:
        """Return the sums of weight, centred label, its square, and the squared error."""
        centred = label.astype(np.float64) - self.centre
        error = label.astype(np.float64) - prediction.astype(np.float64)
        weights = _weights(label, weight)
        return np.array([weights.sum(), weights @ centred, weights @ centred**2, weights @ error**2])


def _weights(label: Numbers, weight: Numbers | None) -> Sums:
    return np.ones(len(label)) if weight is None else weight.astype(np.float64)


def _losses(log_odds: Numbers, label: Numbers, weight: Numbers | None) -> Sums:
    """Return the sums of weight and logarithmic loss."""
    odds = log_odds.astype(np.float64)
    weights = _weights(label, weight)
    return np.array([weights.sum(), weights @ (np.logaddexp(0, odds) - label * odds)])


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


_BY_CLASS: Mapping[str, Callable[[Sums], float]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _macro(_f1s),
    "f1_binary": _of_positives(_f1s),
    "f1_macro": _macro(_f1s),
    "precision": _of_positives(_precisions),
    "precision_macro": _macro(_precisions),
    "precision_micro": _accuracy,
    "recall": _of_positives(_recalls),
    "recall_macro": _macro(_recalls),
    "recall_micro": _accuracy,
}
"""Each class is one decision here, so the micro averages are the accuracy."""

_BY_DISTANCE: Mapping[str, Callable[[Sums], float]] = {"mse": _mse, "r2": _r2}

_BY_ODDS: Mapping[str, Callable[[Sums], float]] = {"logloss": _logloss}
"""Metrics of XGBoost that it computes wrongly for log-odds, those of binary:logitraw."""
