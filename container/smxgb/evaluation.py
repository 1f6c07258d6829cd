"""Evaluation: the values of all metrics after each round, XGBoost's and the container's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.progress import log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xgboost as xgb

    from smxgb.group import Group
    from smxgb.metrics import Metric
    from smxgb.own_metrics import Numbers, OwnMetrics

type Values = dict[tuple[str, str], float]
"""(data set, metric) -> value, in the order of the log: data set by data set, then metric by metric."""


@dataclass(frozen=True)
class _Rows:
    """What predictions are compared with; `weight` None where all rows count the same."""

    label: Numbers
    weight: Numbers | None


class Evaluator:
    """Evaluates a booster on some matrices.

    Args:
        metrics: The job's metrics in their order.
        own: Tallies those of them that are the container's own.
        matrices: The matrices by the name that the log gives them; each worker has its own rows in them.
        group: All workers.
    """

    def __init__(
        self, metrics: Sequence[Metric], own: OwnMetrics, matrices: Mapping[str, xgb.DMatrix], group: Group
    ) -> None:
        self._group = group
        self._metrics = metrics
        self._own = own
        self.matrices = matrices
        self._rows = {name: _rows(matrix) for name, matrix in matrices.items()} if own.names else {}
        self._undefined: set[str] = set()

    @property
    def parameters(self) -> list[tuple[str, object]]:
        """The parameters that make XGBoost compute its metrics, and nothing it was not asked for."""
        upstream = [metric.upstream for metric in self._metrics if not metric.own]
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
            own = self._own_values(booster, data)
            for metric in self._metrics:
                values[data, metric.name] = own[metric.base] if metric.own else next(upstream)
        agreed = np.frombuffer(self._group.broadcast(np.array(list(values.values())).tobytes()))
        values = dict(zip(values, agreed.tolist(), strict=True))
        for (data, name), value in values.items():
            self._say_if_undefined(f"{data}-{name}", value)
        return values

    def _own_values(self, booster: xgb.Booster, data: str) -> dict[str, float]:
        if not self._own.names:
            return {}
        rows = self._rows[data]
        # Predictions for no rows come in an odd shape.
        prediction = booster.predict(self.matrices[data]) if len(rows.label) else np.zeros(0, np.float32)
        sums = self._own.sums(prediction, rows.label, rows.weight)
        return self._own.values(self._group.sum(sums))

    def _say_if_undefined(self, name: str, value: float) -> None:
        if math.isnan(value) and name not in self._undefined:
            self._undefined.add(name)
            log(f"{name} is undefined (nan) on these rows: do they hold more than one class, and any weight?")


def _rows(matrix: xgb.DMatrix) -> _Rows:
    weight = matrix.get_weight()
    return _Rows(matrix.get_label(), weight if len(weight) else None)


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
