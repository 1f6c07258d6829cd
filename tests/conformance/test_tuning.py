"""A tuning job, played: five jobs, their logs read as SageMaker's tuner reads them, the best one picked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import f1_score, roc_auc_score, root_mean_squared_error
from tests.opt_ml import run_train, write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Outcome

USERS = r".*\[[0-9]+\].*#011{}-{}:(\S+)", r"\[.*\].*#011{}-{}:([\d.]+)"
"""The regular expressions of metric definitions that users of AWS's image have."""


@dataclass(frozen=True)
class Tuning:
    """What is tuned: the settings of all jobs and of each, and the metric by scikit-learn."""

    settings: dict[str, object]
    trials: list[dict[str, object]]
    score: Callable[[pd.Series[float], np.ndarray[tuple[int, ...], np.dtype[np.float32]]], float]


BINARY = {"objective": "binary:logistic", "num_round": 4, "eval_metric": "error"}
TRIALS: list[dict[str, object]] = [
    {"max_depth": 1, "eta": 0.1},
    {"max_depth": 2, "eta": 0.5},
    {"max_depth": 4, "eta": 0.3, "min_child_weight": 20},
    {"max_depth": 6, "eta": 0.8, "alpha": 1},
    {"max_depth": 2, "eta": 0.9, "gamma": 5},
]
TUNINGS = {
    "validation:auc": Tuning(BINARY, TRIALS, roc_auc_score),
    "validation:f1": Tuning(BINARY, TRIALS, lambda label, p: f1_score(label, p > 0.5, average="macro")),
    "validation:rmse": Tuning({"num_round": 6}, TRIALS, root_mean_squared_error),
}


def table(metric: str) -> pd.DataFrame:
    frame = (load_diabetes if metric == "validation:rmse" else load_breast_cancer)(as_frame=True).frame
    frame = frame[["target", *frame.columns[:-1]]].sample(frac=1, random_state=8)
    return frame.iloc[:, :9].astype(np.float32)


@pytest.fixture(scope="module")
def described() -> Any:
    """Return what the container says of itself."""
    done = subprocess.run([sys.executable, "-m", "smxgb", "describe"], capture_output=True, check=True)
    return json.loads(done.stdout)


def definitions(metric: str, described: Any) -> tuple[list[str], str]:
    """Return the regular expressions for a metric, the container's own first, and its direction."""
    (own,) = (each["Regex"] for each in described["metric_definitions"] if each["Name"] == metric)
    data, _, name = metric.partition(":")
    (direction,) = (each["direction"] for each in described["metrics"] if each["name"] == name)
    return [own, *(form.format(data, name) for form in USERS)], direction


def read_by_tuner(outcome: Outcome, regex: str, tab: str = "#011") -> float:
    """Return the last value that a regular expression finds in the log as CloudWatch shows it."""
    lines = outcome.log.splitlines()
    found = [match[1] for line in lines if (match := re.search(regex, line.replace("\t", tab)))]
    assert len(found) == len([line for line in lines if re.match(r"\[\d+\]\t", line)])
    return float(found[-1])


@pytest.mark.parametrize("metric", TUNINGS)
def test_a_tuner_reads_each_value_and_picks_the_best_job(metric: str, tmp_path: Path, described: Any) -> None:
    tuning, frame = TUNINGS[metric], table(metric)
    parts = {"train": frame[:250], "validation": frame[250:]}
    regexes, direction = definitions(metric, described)
    values, scores = [], []
    for number, trial in enumerate(tuning.trials):
        settings = {**tuning.settings, **trial, "_tuning_objective_metric": metric}
        base = tmp_path / str(number)
        write_opt_ml(base, hyperparameters=settings, channels=parts)
        # One whole job shows that what the tuner reads is the output of its processes.
        done = run_train(base) if (metric, number) == ("validation:auc", 0) else work(base)
        assert done.code == 0, done.log
        read = {read_by_tuner(done, regex) for regex in regexes}
        read.add(read_by_tuner(done, regexes[0], tab="\t"))
        assert len(read) == 1
        values.append(read.pop())
        held_out = parts["validation"]
        scores.append(tuning.score(held_out["target"], done.predict(held_out.iloc[:, 1:])))
    assert values == pytest.approx(scores, rel=1e-5)
    assert direction == ("Minimize" if metric == "validation:rmse" else "Maximize")
    best = min if direction == "Minimize" else max
    assert len(set(values)) > 2
    assert values.index(best(values)) == scores.index(best(scores))
