"""The metrics of jobs, in metrics.json, against scikit-learn on the loaded model's predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xgboost as xgb
from scipy.special import expit, softmax
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from tests.opt_ml import write_opt_ml
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    type Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Rows:
    """Labels, weights, and what a model says of their rows.

    `value` is the prediction on the scale of the labels, `score` a class's score or each class's probability,
    `hard` the predicted class.
    """

    label: Numbers
    weight: Numbers | None
    value: Numbers
    score: Numbers
    hard: Numbers


def of_class(function: Callable[..., float], **options: object) -> Callable[[Rows], float]:
    return lambda rows: function(rows.label, rows.hard, sample_weight=rows.weight, **options)


def of_value(function: Callable[..., float]) -> Callable[[Rows], float]:
    return lambda rows: function(rows.label, rows.value, sample_weight=rows.weight)


def of_score(function: Callable[..., float], **options: object) -> Callable[[Rows], float]:
    return lambda rows: function(rows.label, rows.score, sample_weight=rows.weight, **options)


def balanced_accuracy(rows: Rows) -> float:
    return float(metrics.balanced_accuracy_score(rows.label, rows.hard, sample_weight=rows.weight))


def mape(rows: Rows) -> float:
    return float(np.average(np.abs((rows.label - rows.value) / rows.label), weights=rows.weight))


def pseudo_huber(rows: Rows) -> float:
    return float(np.average(np.sqrt(1 + (rows.label - rows.value) ** 2) - 1, weights=rows.weight))


CLASSES: dict[str, Callable[[Rows], float]] = {
    "accuracy": of_class(metrics.accuracy_score),
    "balanced_accuracy": balanced_accuracy,
    "f1": of_class(metrics.f1_score, average="macro"),
    "f1_macro": of_class(metrics.f1_score, average="macro"),
    "precision_macro": of_class(metrics.precision_score, average="macro", zero_division=0),
    "precision_micro": of_class(metrics.precision_score, average="micro"),
    "recall_macro": of_class(metrics.recall_score, average="macro"),
    "recall_micro": of_class(metrics.recall_score, average="micro"),
}
BINARY = CLASSES | {
    "f1_binary": of_class(metrics.f1_score),
    "precision": of_class(metrics.precision_score),
    "recall": of_class(metrics.recall_score),
    "error": of_class(metrics.zero_one_loss),
}
SCORED = BINARY | {
    "auc": of_score(metrics.roc_auc_score),
    "logloss": of_score(metrics.log_loss),
    "rmse": of_value(metrics.root_mean_squared_error),
    "mae": of_value(metrics.mean_absolute_error),
    "mse": of_value(metrics.mean_squared_error),
    "r2": of_value(metrics.r2_score),
}
MULTI = CLASSES | {
    "merror": of_class(metrics.zero_one_loss),
    "mlogloss": of_score(metrics.log_loss),
    "auc": of_score(metrics.roc_auc_score, multi_class="ovr", average="weighted"),
}
REGRESSION: dict[str, Callable[[Rows], float]] = {
    "mse": of_value(metrics.mean_squared_error),
    "r2": of_value(metrics.r2_score),
    "rmse": of_value(metrics.root_mean_squared_error),
    "mae": of_value(metrics.mean_absolute_error),
    "rmsle": of_value(metrics.root_mean_squared_log_error),
    "mape": mape,
    "mphe": pseudo_huber,
}
TABLE = {
    "binary:logistic": SCORED,
    "binary:logitraw": SCORED,
    "binary:hinge": BINARY | {"mse": of_value(metrics.mean_squared_error), "r2": of_value(metrics.r2_score)},
    "multi:softmax": MULTI,
    "multi:softprob": MULTI,
    "reg:squarederror": REGRESSION,
    "count:poisson": REGRESSION,
}


def table(objective: str) -> pd.DataFrame:
    """Return real rows that no few trees tell apart: the label comes first."""
    if objective.startswith("binary"):
        whole = load_breast_cancer(as_frame=True).frame
        frame = whole[["target", "mean symmetry", "fractal dimension error", "texture error"]]
    elif objective.startswith("multi"):
        frame = load_wine(as_frame=True).frame[["target", "ash", "magnesium", "proanthocyanins"]]
    else:
        frame = load_diabetes(as_frame=True).frame[["target", "bmi", "bp", "s5"]]
        if objective == "count:poisson":
            frame = frame.assign(target=np.round(frame["target"] / 40) + 1)
    return frame.sample(frac=1, random_state=3).astype(np.float32)


def predicted(
    booster: xgb.Booster, objective: str, features: Numbers, label: Numbers, weight: Numbers | None
) -> Rows:
    matrix = xgb.DMatrix(features)
    margin = booster.predict(matrix, output_margin=True)
    value = booster.predict(matrix)
    if objective.startswith("multi"):
        # Renormalised in 64 bits, for scikit-learn's log_loss minds the eighth digit.
        score = softmax(margin.astype(float), axis=1)
        hard = score.argmax(axis=1)
        assert (hard == (value if value.ndim == 1 else value.argmax(axis=1))).all()
        return Rows(label, weight, value, score, hard)
    # What logitraw predicts is the margin itself; scikit-learn's log_loss takes probabilities.
    return Rows(label, weight, value, expit(margin.astype(float)), (margin > 0).astype(int))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", TABLE)
def test_the_metrics_of_a_job_are_scikit_learns(objective: str, weighted: bool, tmp_path: Path) -> None:  # noqa: FBT001
    frame = table(objective)
    if weighted:
        frame.insert(1, "weight", np.random.default_rng(5).gamma(1, size=len(frame)).astype(np.float32))
    cut = len(frame) * 2 // 3
    parts = {"train": frame[:cut], "validation": frame[cut:]}
    settings = {"objective": objective, "num_round": 4, "max_depth": 2, "csv_weights": weighted}
    settings["eval_metric"] = ",".join(TABLE[objective])
    write_opt_ml(tmp_path, hyperparameters=settings, channels=parts)
    done = work(tmp_path)
    assert done.code == 0, done.log
    history = json.loads(done.output_data["metrics.json"])["history"]
    for name, part in parts.items():
        weight = part["weight"].to_numpy() if weighted else None
        features = part.drop(columns=["target", *(["weight"] if weighted else [])]).to_numpy()
        rows = predicted(done.booster(), objective, features, part["target"].to_numpy(), weight)
        expected = {metric: function(rows) for metric, function in TABLE[objective].items()}
        found = {metric: values[-1] for metric, values in history[name].items()}
        assert list(found) == list(expected)
        assert found == pytest.approx(expected, rel=2e-5, abs=1e-6)
