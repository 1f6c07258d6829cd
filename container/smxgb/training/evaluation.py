"""Evaluation: the values of all metrics after each round, XGBoost's and the container's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from smxgb.log import log
from smxgb.settings import CURVES, kind_of
from smxgb.training.metrics.curves import Rows, ranked_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xgboost as xgb

    from smxgb.rows import Group
    from smxgb.settings import Metric
    from smxgb.training.metrics.curves import Scores
    from smxgb.training.metrics.own import OwnMetrics

type Values = dict[tuple[str, str], float]
"""(data set, metric) -> value, in the order of the log: data set by data set, then metric by metric."""


class Evaluator:
    """Evaluates a booster on some matrices.

    XGBoost averages auc and aucpr over workers, so where there are several they are computed here. With
    queries (`per_query`) XGBoost's average is one over queries, and right.

    Args:
        metrics: The job's metrics in their order.
        own: Tallies those of them that are the container's own.
        matrices: The matrices by the name that the log gives them; each worker has its own rows in them.
        group: All workers.
        per_query: Whether the rows belong to queries.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        own: OwnMetrics,
        matrices: Mapping[str, xgb.DMatrix],
        group: Group,
        *,
        per_query: bool = False,
    ) -> None:
        self._metrics = metrics
        self._own = own
        self._group = group
        self._curves = tuple(
            curve
            for curve in sorted(CURVES)
            if group.size > 1 and not per_query and any(metric.base == curve for metric in metrics)
        )
        self.matrices = matrices
        needed = own.names or self._curves
        self._rows = {name: _rows(matrix) for name, matrix in matrices.items()} if needed else {}
        self._undefined: set[str] = set()

    @property
    def parameters(self) -> list[tuple[str, object]]:
        """The parameters that make XGBoost compute its metrics, and nothing it was not asked for."""
        # XGBoost computes what it is asked for twice, under two names, once.
        upstream = list(dict.fromkeys(m.upstream for m in self._metrics if not self._computes(m)))
        if not upstream:
            return [("disable_default_eval_metric", 1)]
        return [("eval_metric", metric) for metric in upstream]

    def evaluate(self, booster: xgb.Booster, number: int) -> Values:
        """Return all values after round `number`; one that is undefined (nan) is said once.

        All workers return the first one's values: processors of different kinds may round differently, and
        what follows, such as to stop early, must be one decision.
        """
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
        agreed = np.frombuffer(self._group.broadcast(np.array(list(values.values())).tobytes()))
        values = dict(zip(values, agreed.tolist(), strict=True))
        for data in self.matrices:
            for metric in self._metrics:
                self._say_if_undefined(data, metric, values[data, metric.name])
        return values

    def _own_values(self, booster: xgb.Booster, data: str) -> dict[str, float]:
        if not self._own.names:
            return {}
        rows = self._rows[data]
        # Predictions for no rows come in an odd shape.
        prediction = booster.predict(self.matrices[data]) if len(rows.label) else np.zeros(0, np.float32)
        sums = self._own.sums(prediction, rows.label, rows.weight)
        return self._own.values(self._group.sum(sums))

    def _curve_values(self, booster: xgb.Booster, data: str) -> dict[str, float]:
        if not self._curves:
            return {}
        rows = self._rows[data]
        scores = self._scores(booster, self.matrices[data])
        return {curve: ranked_value(curve, scores, rows, self._group) for curve in self._curves}

    def _scores(self, booster: xgb.Booster, matrix: xgb.DMatrix) -> Scores:
        """Return what auc ranks the rows by: the prediction, or the probability of each class."""
        classes = self._own.classes if kind_of(self._own.objective) == "multi-class" else 0
        if not matrix.num_row():
            return np.zeros((0, classes) if classes else 0, np.float32)
        if not classes:
            return booster.predict(matrix)
        margins = booster.predict(matrix, output_margin=True)
        exponentials = np.exp(margins - margins.max(axis=1, keepdims=True))
        probabilities: Scores = exponentials / exponentials.sum(axis=1, keepdims=True)
        return probabilities

    def _computes(self, metric: Metric) -> bool:
        return metric.own or metric.base in self._curves

    def _say_if_undefined(self, data: str, metric: Metric, value: float) -> None:
        name = f"{data}-{metric.name}"
        if math.isnan(value) and name not in self._undefined:
            self._undefined.add(name)
            asked = "do they hold more than one class" if metric.base in CURVES else "do their labels fit it"
            log(f"{name} is undefined (nan) on these rows: {asked}, and any weight?")


def _rows(matrix: xgb.DMatrix) -> Rows:
    weight = matrix.get_weight()
    return Rows(matrix.get_label(), weight if len(weight) else None)


def parse_evaluation(text: str) -> list[float]:
    r"""Return the values in XGBoost's `[0]\ttrain-rmse:1.5\tvalidation-rmse:1.6`.

    Its names are left: it calls `error@0.5` error and `tweedie-nloglik` tweedie-nloglik@1.5, and a tuning job
    looks for the name that it asked for.
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
