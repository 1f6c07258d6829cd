"""Evaluation: the values of all metrics after each round, XGBoost's and the container's own."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.log import log
from smxgb.settings import CURVES
from smxgb.training.metrics import (
    OwnMetrics,
    Truth,
    areas,
    curve_value,
    rankings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor, Future

    import numpy.typing as npt
    import xgboost as xgb

    from smxgb.rows import FloatArray, Group
    from smxgb.settings import Metric
    from smxgb.training.metrics import Problem, Ranked, Sums

type Values = dict[tuple[str, str], float]
"""(data set, metric) -> value, in the order of the log: data set by data set, then metric by metric."""


class Evaluator:
    """Evaluates a booster on some matrices.

    XGBoost averages auc and aucpr over workers, so with several workers they are computed here. With one they
    are computed here because sorting is cheaper than XGBoost's way. With queries XGBoost's average is over
    queries, and right; on a GPU its metrics are computed where the predictions are.

    Args:
        metrics: The job's metrics in their order.
        problem: What the job predicts.
        matrices: The matrices by the name that the log gives them; each worker has its own rows in them.
        group: All workers.
        threads: The threads that the container's own metrics are computed by.
        on_gpu: Whether XGBoost predicts on a GPU.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        problem: Problem,
        matrices: Mapping[str, xgb.DMatrix],
        group: Group,
        *,
        threads: int = 1,
        on_gpu: bool = False,
    ) -> None:
        self._metrics = metrics
        self._problem = problem
        self._own = OwnMetrics([metric.base for metric in metrics if metric.own], problem)
        self._group = group
        self._threads = threads
        asked = {metric.base for metric in metrics}
        # A predicted class says nothing of its probability, whose last digits are XGBoost's own.
        is_cheaper = not on_gpu and problem.objective != "multi:softmax"
        are_ours = not problem.has_queries and (group.size > 1 or is_cheaper)
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

        All workers return the same values, so that they decide alike, for example to stop early. XGBoost's
        are the first worker's, since processors of different kinds may round differently. The container's own
        come from sums over all workers.
        """
        values = self._values(booster, number)
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
        with ThreadPoolExecutor(self._threads) as pool:
            # The rows of one data set are tallied while XGBoost predicts and evaluates the next.
            started = {data: self._start(booster, data, pool) for data in self._truths}
            upstream = self._upstream_values(booster, number)
            upstream, sums = self._agreed(upstream, [each.sums() for each in started.values()])
            curves = self._curve_values(list(started.values()), pool)
        given = iter(upstream)
        ours = {data: self._own.values(sums[at]) | curves[at] for at, data in enumerate(started)}
        values: Values = {}
        for data in self.matrices:
            known = dict(ours.get(data, {}))
            for metric in self._metrics:
                key = metric.base if self._computes(metric) else metric.upstream
                if key not in known:
                    known[key] = next(given)
                values[data, metric.name] = known[key]
        return values

    def _start(self, booster: xgb.Booster, data: str, pool: Executor) -> _Started:
        matrix, truth = self.matrices[data], self._truths[data]
        prediction = _predicted(booster, matrix, self._problem, probabilities=bool(self._curves))
        ranked = rankings(prediction, truth, self._problem) if self._curves else []
        return _Started(self._own.start_sums(prediction, truth, pool), ranked)

    def _upstream_values(self, booster: xgb.Booster, number: int) -> list[float]:
        if all(self._computes(metric) for metric in self._metrics):
            return []
        sets = [(matrix, name) for name, matrix in self.matrices.items()]
        return parse_evaluation(booster.eval_set(sets, iteration=number))

    def _agreed(self, upstream: list[float], sums: list[Sums]) -> tuple[list[float], list[Sums]]:
        """Return the first worker's values, and the sums of all workers, at the cost of one sum."""
        own = np.array(upstream) if self._group.rank == 0 else np.zeros(len(upstream))
        parts = [own, *sums]
        ends = np.cumsum([len(part) for part in parts])
        first, *added = np.split(self._group.sum(np.concatenate(parts)), ends[:-1])
        return first.tolist(), added

    def _curve_values(self, started: list[_Started], pool: Executor) -> list[dict[str, float]]:
        found = iter(areas([one for each in started for one in each.ranked], self._group, pool))
        of_sets = [[next(found) for _ in each.ranked] for each in started]
        return [{curve: curve_value(curve, of_set) for curve in self._curves} for of_set in of_sets]

    def _computes(self, metric: Metric) -> bool:
        return metric.own or metric.base in self._curves


def _undefined(name: str, metric: Metric) -> str:
    needed = "labels of two classes" if metric.base in CURVES else "labels that it is defined for"
    return f"{name} is undefined (nan) on these rows: it needs {needed}, and a weight above 0."


@dataclass(frozen=True)
class _Started:
    """What is being computed of the rows of a data set, sums block by block, and what is to be ranked."""

    blocks: list[Future[Sums]]
    ranked: list[Ranked]

    def sums(self) -> Sums:
        """Return the sums of all blocks."""
        return np.sum([block.result() for block in self.blocks], axis=0) if self.blocks else np.zeros(0)


def _predicted(
    booster: xgb.Booster, matrix: xgb.DMatrix, problem: Problem, *, probabilities: bool
) -> FloatArray:
    """Return the prediction of each row; with `probabilities`, those of multi:softmax are of each class."""
    if not matrix.num_row():
        # For no rows, XGBoost returns an array of another shape.
        return np.zeros((0, problem.classes) if problem.is_multi_class else 0, np.float32)
    if not probabilities or problem.objective != "multi:softmax":
        return booster.predict(matrix)
    margins = booster.predict(matrix, output_margin=True)
    exponentials = np.exp(margins - margins.max(axis=1, keepdims=True))
    divided: FloatArray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return divided


def _truth(matrix: xgb.DMatrix) -> Truth:
    weight = matrix.get_weight()
    return Truth(_in_bytes(matrix.get_label()), weight if len(weight) else None)


def _in_bytes(label: FloatArray) -> FloatArray | npt.NDArray[np.int8]:
    """Return labels in a byte each, if they are small whole numbers: they stay while a job trains."""
    with np.errstate(invalid="ignore"):
        small = label.astype(np.int8)
    return small if np.array_equal(small, label) else label


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
