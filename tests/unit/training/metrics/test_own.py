from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from smxgb.settings.metrics import METRICS
from smxgb.settings.objectives import Objective, kind_of
from smxgb.training.metrics.own import OWN, OwnMetrics
from smxgb.training.metrics.problem import Problem, Truth

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = [name for name, entry in METRICS.items() if entry.source == "container"]

ORACLES: dict[str, tuple[Callable[..., float], dict[str, object]]] = {
    "accuracy": (oracle.accuracy_score, {}),
    "balanced_accuracy": (oracle.balanced_accuracy_score, {}),
    "f1": (oracle.f1_score, {"average": "macro", "zero_division": 0}),
    "f1_binary": (oracle.f1_score, {"average": "binary", "zero_division": 0}),
    "f1_macro": (oracle.f1_score, {"average": "macro", "zero_division": 0}),
    "precision": (oracle.precision_score, {"average": "binary", "zero_division": 0}),
    "precision_macro": (oracle.precision_score, {"average": "macro", "zero_division": 0}),
    "precision_micro": (oracle.precision_score, {"average": "micro", "zero_division": 0}),
    "recall": (oracle.recall_score, {"average": "binary", "zero_division": 0}),
    "recall_macro": (oracle.recall_score, {"average": "macro", "zero_division": 0}),
    "recall_micro": (oracle.recall_score, {"average": "micro", "zero_division": 0}),
    "r2": (oracle.r2_score, {}),
    "mse": (oracle.mean_squared_error, {}),
}

OBJECTIVES: list[Objective] = [
    "binary:logistic",
    "binary:hinge",
    "binary:logitraw",
    "multi:softmax",
    "multi:softprob",
    "reg:squarederror",
    "count:poisson",
]
CASES = [
    (objective, name)
    for objective in OBJECTIVES
    for name in NAMES
    if kind_of(objective) in METRICS[name].fits
]


def trained(objective: Objective) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of a real booster, and the labels."""
    random = np.random.default_rng(3)
    rows = random.random((400, 4), dtype=np.float32)
    signal = rows[:, 0] + 0.5 * random.random(400)
    label = {
        "binary": (signal > 0.8) + 0.0,
        "multi": (signal * 2).astype(int),
        "count": (signal * 4).astype(int),
    }.get(objective.partition(":")[0], signal * 10)
    matrix = xgb.DMatrix(rows, label=label)
    params = {"objective": objective, "max_depth": 2, "nthread": 1}
    booster = xgb.train(params | ({"num_class": 3} if objective.startswith("multi") else {}), matrix, 3)
    return booster.predict(matrix), matrix.get_label()


def classes_of(objective: Objective, prediction: np.ndarray) -> np.ndarray:
    """Return the predicted classes, or the prediction of a regression."""
    if objective == "multi:softprob":
        return prediction.argmax(axis=1)
    if objective == "binary:logistic":
        return (prediction > 0.5).astype(int)
    return (prediction > 0).astype(int) if objective == "binary:logitraw" else prediction


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("objective", "name"), CASES)
def test_a_metric_is_scikit_learns_on_a_real_boosters_predictions(
    objective: Objective, name: str, *, weighted: bool
) -> None:
    prediction, label = trained(objective)
    weight = np.random.default_rng(5).random(len(label), dtype=np.float32) * 3 if weighted else None
    own = OwnMetrics([name], Problem(objective, 3 if objective.startswith("multi") else 2))
    value = own.values(own.sums(prediction, Truth(label, weight)))[name]
    score, options = ORACLES[name]
    seen = prediction if name in {"mse", "r2"} else classes_of(objective, prediction)
    expected = score(label, seen, sample_weight=weight, **options)
    assert value == pytest.approx(expected, rel=1e-6)
    assert value not in {0, 1}


@pytest.mark.parametrize(("objective", "name"), CASES)
def test_the_sums_of_parts_add_up_to_the_whole(objective: Objective, name: str) -> None:
    prediction, label = trained(objective)
    own = OwnMetrics([name], Problem(objective, 3 if objective.startswith("multi") else 2))
    whole = own.values(own.sums(prediction, Truth(label)))
    ends = [(0, 0), (0, 30), (30, 31), (31, 400)]
    parts = sum(own.sums(prediction[start:end], Truth(label[start:end])) for start, end in ends)
    assert own.values(cast("np.ndarray", parts)) == pytest.approx(whole)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=30))
def test_any_few_rows_score_as_in_scikit_learn(rows: list[tuple[int, int, int]]) -> None:
    label, prediction, weight = (np.array(column, dtype=np.float32) for column in zip(*rows, strict=True))
    names = [name for name in NAMES if "multi-class" in METRICS[name].fits]
    own = OwnMetrics(names, Problem("multi:softmax", 4))
    values = own.values(own.sums(prediction, Truth(label, weight)))
    for name in names:
        score, options = ORACLES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = score(label, prediction, sample_weight=weight, **options)
        assert values[name] == pytest.approx(expected)


def test_many_metrics_share_one_array_of_sums() -> None:
    prediction, label = trained("binary:logistic")
    names = [name for name in NAMES if "binary" in METRICS[name].fits]
    own = OwnMetrics(names, Problem("binary:logistic"))
    sums = own.sums(prediction, Truth(label))
    assert sums.shape == (8,)
    assert list(own.values(sums)) == names


def test_labels_far_from_zero_keep_their_r2() -> None:
    label = (np.arange(1000) % 10 + 1e6).astype(np.float32)
    prediction = label + np.float32(0.5)
    own = OwnMetrics(["r2"], Problem("reg:squarederror", centre=1e6))
    assert own.values(own.sums(prediction, Truth(label)))["r2"] == pytest.approx(
        oracle.r2_score(label, prediction)
    )


def test_equal_labels_have_the_r2_that_scikit_learn_gives_them() -> None:
    label = np.full(5, 3, dtype=np.float32)
    own = OwnMetrics(["r2"], Problem("reg:squarederror"))
    assert own.values(own.sums(label, Truth(label)))["r2"] == 1
    assert own.values(own.sums(label + 1, Truth(label)))["r2"] == 0


@pytest.mark.parametrize(("objective", "name"), CASES)
def test_without_rows_a_metric_has_no_value(objective: Objective, name: str) -> None:
    none = np.zeros(0, dtype=np.float32)
    own = OwnMetrics([name], Problem(objective))
    assert math.isnan(own.values(own.sums(none, Truth(none)))[name])


def test_every_metric_that_the_settings_call_the_containers_is_computed() -> None:
    # logloss is XGBoost's, but for log-odds.
    assert set(OWN) == {*NAMES, "logloss"}


def test_the_logarithmic_loss_of_log_odds_is_scikit_learns() -> None:
    prediction, label = trained("binary:logitraw")
    weight = np.random.default_rng(5).random(len(label), dtype=np.float32)
    own = OwnMetrics(["logloss"], Problem("binary:logitraw"))
    value = own.values(own.sums(prediction, Truth(label, weight)))["logloss"]
    probability = 1 / (1 + np.exp(-prediction.astype(np.float64)))
    assert value == pytest.approx(oracle.log_loss(label, probability, sample_weight=weight), rel=1e-6)
