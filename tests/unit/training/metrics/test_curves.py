from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

from smxgb.rows.group import Solo
from smxgb.training.metrics import Truth, curve_value

if TYPE_CHECKING:
    from smxgb.settings import Curve

ALONE = Solo("algo-1")


def scored(decimals: int, rows: int = 5000) -> tuple[np.ndarray, Truth]:
    """Return scores, which repeat if they are rounded to few decimals, and labels that go with them."""
    generator = np.random.default_rng(7)
    label = (generator.random(rows) < 0.3).astype(np.float32)
    scores = np.round(label + generator.normal(size=rows), decimals).astype(np.float32)
    return scores, Truth(label, generator.integers(1, 4, rows).astype(np.float32))


def of_xgboost(curve: Curve, scores: np.ndarray, truth: Truth) -> float:
    """Return what XGBoost alone computes for a model that predicts the scores."""
    rows = np.zeros((len(scores), 1))
    matrix = xgb.DMatrix(rows, truth.label, weight=truth.weight, base_margin=scores)
    booster = xgb.Booster({"objective": "binary:logitraw", "eval_metric": curve}, [matrix])
    return float(booster.eval(matrix).rpartition(":")[2])


@pytest.mark.parametrize("curve", ["auc", "aucpr"])
@pytest.mark.parametrize(("decimals", "error"), [(1, 1e-6), (6, 1e-5)], ids=["repeated", "continuous"])
def test_the_area_is_xgboosts_for_one_worker(curve: Curve, decimals: int, error: float) -> None:
    scores, truth = scored(decimals)
    assert curve_value(curve, scores, truth, ALONE) == pytest.approx(
        of_xgboost(curve, scores, truth), abs=error
    )


def test_the_area_of_several_classes_is_scikit_learns_weighted_mean() -> None:
    generator = np.random.default_rng(3)
    label = generator.integers(0, 3, 2000).astype(np.float32)
    scores = generator.random((2000, 3)) + np.eye(3)[label.astype(int)] / 2
    probability = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
    expected = roc_auc_score(label, probability, multi_class="ovr", average="weighted")
    assert curve_value("auc", probability, Truth(label), ALONE) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("curve", ["auc", "aucpr"])
def test_rows_of_one_class_have_no_area(curve: Curve) -> None:
    scores, truth = scored(3)
    assert math.isnan(curve_value(curve, scores, Truth(np.ones_like(truth.label)), ALONE))
    # Rows without weight are no rows.
    assert math.isnan(curve_value(curve, scores, Truth(truth.label, truth.label), ALONE))


@pytest.mark.parametrize("curve", ["auc", "aucpr"])
def test_the_order_of_the_rows_does_not_matter(curve: Curve) -> None:
    scores, truth = scored(2)
    assert truth.weight is not None
    order = np.random.default_rng(1).permutation(len(scores))
    shuffled = Truth(truth.label[order], truth.weight[order])
    value = curve_value(curve, scores, truth, ALONE)
    assert curve_value(curve, scores[order], shuffled, ALONE) == pytest.approx(value, abs=1e-12)
