"""Evaluation: the values of all metrics after each round, XGBoost's and the container's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from smxgb.log import log
from smxgb.settings import CURVES
from smxgb.training.metrics import OwnMetrics, Truth, curve_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xgboost as xgb

    from smxgb.rows import FloatArray, Group
    from smxgb.settings import Metric
    from smxgb.training.metrics import Problem

type Values = dict[tuple[str, str], float]
"""(data set, metric) -> value, in the order of the log: data set by data set, then metric by metric."""


class Evaluator:
    """Evaluates a booster on some matrices.

    XGBoost averages auc and aucpr over workers, so with several workers they are computed here. With queries
    XGBoost's average is over queries, and right.

    Args:
        metrics: The job's metrics in their order.
        problem: What the job predicts.
        matrices: The matrices by the name that the log gives them; each worker has its own rows in them.
        group: All workers.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        problem: Problem,
        matrices: Mapping[str, xgb.DMatrix],
        group: Group,
    ) -> None:
        self._metrics = metrics
        self._problem = problem
        self._own = OwnMetrics([metric.base for metric in metrics if metric.own], problem)
        self._group = group
        asked = {metric.base for metric in metrics}
        are_ours = group.size > 1 and not problem.has_queries
        self._curves = tuple(curve for curve in sorted(CURVES) if are_ours and curve in asked)
        self.matrices = matrices
        needed = self._own.names or self._curves
        self._truths = {name: _truth(matrix) for name, matrix in matrices.items()} if needed else {}

    @property
    def parameters(self) -> list[tuple[str, object]]:
        """The parameters that make XGBoost compute the metrics that it was asked for, and no default one."""
        # XGBoost computes a metric once that is asked for under two names, as error and error@0.5.
        upstream = list(dict.fromkeys(m.upstream for m in self._metrics if not self._computes(m)))
        if not upstream:
            return [("disable_default_eval_metric", 1)]
        return [("eval_metric", metric) for metric in upstream]

    def evaluate(self, booster: xgb.Booster, number: int, undefined: set[str]) -> Values:
        """Return all values after round `number`.

        The log says once of a metric that it is undefined (nan): `undefined` names those of which it has.

        All workers return the first worker's values: processors of different kinds may round differently,
        and all workers must decide alike, for example to stop early.
        """
        values = self._agreed(self._values(booster, number))
        for data in self.matrices:
            for metric in self._metrics:
                if (
                    math.isnan(values[data, metric.name])
                    and (name := f"{data}-{metric.name}") not in undefined
                ):
                    undefined.add(name)
                    log(_undefined(name, metric))
        return values

    def _values(self, booster: xgb.Booster, number: int) -> Values:
        sets = [(matrix, name) for name, matrix in self.matrices.items()]
        upstream = iter(parse_evaluation(booster.eval_set(sets, iteration=number)))
        values: Values = {}
        for data in self.matrices:
            ours = self._own_values(booster, data) | self._curve_values(booster, data)
            given: dict[str, float] = {}
            for metric in self._metrics:
                if not self._computes(metric) and metric.upstream not in given:
                    given[metric.upstream] = next(upstream)
                value = ours[metric.base] if self._computes(metric) else given[metric.upstream]
                values[data, metric.name] = value
        return values

    def _agreed(self, values: Values) -> Values:
        first = np.frombuffer(self._group.broadcast(np.array(list(values.values())).tobytes()))
        return dict(zip(values, first.tolist(), strict=True))

    def _own_values(self, booster: xgb.Booster, data: str) -> dict[str, float]:
        if not self._own.names:
            return {}
        truth = self._truths[data]
        # For no rows, XGBoost returns an array of another shape.
        prediction = booster.predict(self.matrices[data]) if len(truth.label) else np.zeros(0, np.float32)
        sums = self._own.sums(prediction, truth)
        return self._own.values(self._group.sum(sums))

    def _curve_values(self, booster: xgb.Booster, data: str) -> dict[str, float]:
        if not self._curves:
            return {}
        scores = self._scores(booster, self.matrices[data])
        return {curve: curve_value(curve, scores, self._truths[data], self._group) for curve in self._curves}

    def _scores(self, booster: xgb.Booster, matrix: xgb.DMatrix) -> FloatArray:
        """Return what auc ranks the rows by: the prediction, or the probability of each class."""
        classes = self._problem.classes if self._problem.is_multi_class else 0
        if not matrix.num_row():
            return np.zeros((0, classes) if classes else 0, np.float32)
        if not classes:
            return booster.predict(matrix)
        margins = booster.predict(matrix, output_margin=True)
        exponentials = np.exp(margins - margins.max(axis=1, keepdims=True))
        probabilities: FloatArray = exponentials / exponentials.sum(axis=1, keepdims=True)
        return probabilities

    def _computes(self, metric: Metric) -> bool:
        return metric.own or metric.base in self._curves


def _undefined(name: str, metric: Metric) -> str:
    needed = "labels of two classes" if metric.base in CURVES else "labels that it is defined for"
    return f"{name} is undefined (nan) on these rows: it needs {needed}, and a weight above 0."


def _truth(matrix: xgb.DMatrix) -> Truth:
    weight = matrix.get_weight()
    return Truth(matrix.get_label(), weight if len(weight) else None)


def parse_evaluation(text: str) -> list[float]:
    r"""Return the values in XGBoost's `[0]\ttrain-rmse:1.5\tvalidation-rmse:1.6`.

    Its names are not used: XGBoost calls `error@0.5` error and `tweedie-nloglik` tweedie-nloglik@1.5, and a
    tuning job looks for the name that it asked for.
    """
    return [float(part.rpartition(":")[2]) for part in text.split("\t")[1:]]


def evaluation_line(number: int, values: Values) -> str:
    """Return the line that CloudWatch and tuning read: `[0]` and `data-metric:value`, tabs between."""
    return "\t".join(
        [
            f"[{number}]",
            *(f"{data}-{metric}:{fixed_point(value)}" for (data, metric), value in values.items()),
        ]
    )


def fixed_point(value: float) -> str:
    """Return the value without an exponent: 5 decimals, or up to 12 until 6 significant digits show."""
    if not math.isfinite(value) or value == 0:
        return f"{value:.5f}"
    decimals = 5 - math.floor(math.log10(abs(value)))
    return f"{value:.{min(max(decimals, 5), 12)}f}"
