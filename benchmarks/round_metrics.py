"""One round of auc with its prediction, by sorting and by `eval_set`: processor and wall time, value.

Both evaluate the same booster on the same rows, in turn; the ratios are medians.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import xgboost as xgb

from smxgb.rows import Solo
from smxgb.settings.metrics import parse_metric
from smxgb.training.evaluation import Evaluator
from smxgb.training.metrics import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

PARAMETERS = {"objective": "binary:logistic", "max_depth": 6, "disable_default_eval_metric": 1}


def trained(rows: int, columns: int, rounds: int) -> tuple[xgb.Booster, xgb.QuantileDMatrix]:
    """Return a booster and the matrix it was trained on, whose predictions it has in its cache."""
    generator = np.random.default_rng(7)
    values = generator.normal(size=(rows, columns)).astype(np.float32)
    label = (values[:, 0] + generator.logistic(size=rows) > 0).astype(np.float32)
    matrix = xgb.QuantileDMatrix(values, label)
    return xgb.train(PARAMETERS, matrix, rounds, evals=[(matrix, "train")], verbose_eval=False), matrix


def measured(evaluate: Callable[[], float]) -> tuple[float, float, float]:
    """Return the seconds of processor and of wall time, and the value."""
    wall, processor = time.perf_counter(), time.process_time()
    value = evaluate()
    return time.process_time() - processor, time.perf_counter() - wall, value


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(f"auc of {options.rows:,} rows with its prediction, medians of {options.pairs} pairs")
    print("rounds  sorting / eval_set: processor time  wall time    difference")
    for rounds in (1, 5, 20):
        booster, matrix = trained(options.rows, options.columns, rounds)
        booster.set_param({"nthread": options.threads, "eval_metric": "auc"})
        ours = Evaluator(
            [parse_metric("auc")],
            Problem("binary:logistic"),
            {"train": matrix},
            Solo("here"),
            threads=options.threads,
        )
        pairs = [
            (
                measured(lambda: ours.evaluate(booster, 0)["train", "auc"]),  # noqa: B023 - called at once
                measured(lambda: float(booster.eval_set([(matrix, "a")]).rpartition(":")[2])),  # noqa: B023
            )
            for _ in range(options.pairs)
        ]
        processor, wall = (median(one[part] / other[part] for one, other in pairs) for part in (0, 1))
        one, other = pairs[0]
        print(
            f"{rounds:6}  {one[0] * 1e3:7.0f} / {other[0] * 1e3:7.0f} ms = {processor:.3f}   {wall:9.3f}   "
            f"{abs(one[2] - other[2]):11.1e}"
        )


if __name__ == "__main__":
    main()
