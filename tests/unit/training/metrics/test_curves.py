from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from tests.threads import by_all

from smxgb.rows.worker_group import Solo
from smxgb.training.metrics import Problem, Truth, areas, curve_value, rankings
from smxgb.training.metrics.curves import MOST_MERGED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.rows import Group
    from smxgb.settings import Curve

ALONE = Solo("algo-1")
BINARY = Problem("binary:logistic")


def values(
    scores: np.ndarray, truth: Truth, problem: Problem = BINARY, group: Group = ALONE
) -> dict[Curve, float]:
    """Return both areas of a worker's rows, together with those of the group's others."""
    with ThreadPoolExecutor(2) as pool:
        found = areas(rankings(scores, truth, problem), group, pool)
    return {"auc": curve_value("auc", found), "aucpr": curve_value("aucpr", found)}


def scored(decimals: int, rows: int = 5000) -> tuple[np.ndarray, Truth]:
    """Return scores, which repeat if they are rounded to few decimals, and labels that go with them."""
    generator = np.random.default_rng(7)
    label = (generator.random(rows) < 0.3).astype(np.float32)
    scores = np.round(label + generator.normal(size=rows), decimals).astype(np.float32)
    return scores, Truth(label, generator.integers(1, 4, rows).astype(np.float32))


def of_xgboost(curve: Curve, scores: np.ndarray, truth: Truth) -> float:
    """Return what XGBoost alone computes for a model that predicts the scores, of one or more classes."""
    classes = scores.shape[1] if scores.ndim > 1 else 0
    matrix = xgb.DMatrix(np.zeros((len(scores), 1)), truth.label, weight=truth.weight, base_margin=scores)
    objective = {"objective": "multi:softprob", "num_class": classes} if classes else {}
    parameters = {"objective": "binary:logitraw", "base_score": 0.5, "eval_metric": curve, **objective}
    return float(xgb.Booster(parameters, [matrix]).eval(matrix).rpartition(":")[2])


@pytest.mark.parametrize("kind", ["equal", "weighted", "a weight of 0", "shares"])
@pytest.mark.parametrize("decimals", [0, 1, 6])
def test_the_areas_of_one_worker_are_xgboosts(decimals: int, kind: str) -> None:
    scores, truth = scored(decimals, 70_000)
    truth = {
        "equal": Truth(truth.label),
        "weighted": truth,
        "a weight of 0": Truth(truth.label, truth.weights.astype(np.float32) - 1),
        "shares": Truth(((truth.label + 0.5) / 2).astype(np.float32), truth.weight),
    }[kind]
    found = values(scores, truth)
    for curve, value in found.items():
        assert value == pytest.approx(of_xgboost(curve, scores, truth), abs=1e-9)


def test_the_area_of_several_classes_is_scikit_learns_weighted_mean_and_xgboosts() -> None:
    generator = np.random.default_rng(3)
    label = generator.integers(0, 3, 2000).astype(np.float32)
    margins = generator.normal(size=(2000, 3)) + np.eye(3)[label.astype(int)]
    matrix = xgb.DMatrix(np.zeros((2000, 1)), label, base_margin=margins)
    softprob = xgb.Booster({"objective": "multi:softprob", "num_class": 3}, [matrix])
    probability = softprob.predict(matrix)
    found = values(probability, Truth(label), Problem("multi:softprob", 3))
    expected = roc_auc_score(label, probability, multi_class="ovr", average="weighted")
    assert found["auc"] == pytest.approx(expected, abs=1e-9)
    for curve, value in found.items():
        assert value == pytest.approx(of_xgboost(curve, margins, Truth(label)), abs=1e-9)


def test_rows_of_one_class_have_no_area() -> None:
    scores, truth = scored(3)
    assert all(map(math.isnan, values(scores, Truth(np.ones_like(truth.label))).values()))
    # Rows without weight are no rows.
    weights = truth.label.astype(np.float32)
    assert all(map(math.isnan, values(scores, Truth(truth.label, weights)).values()))
    assert all(map(math.isnan, values(scores[:0], Truth(truth.label[:0])).values()))


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 40),
)
def test_any_few_rows_have_the_area_of_all_pairs_on_one_worker_and_on_two(
    rows: list[tuple[int, bool, float]], cut: int
) -> None:
    scores, label, weight = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    wins = np.sign(scores[:, None] - scores[None, :]) / 2 + 0.5
    pairs = np.outer(label * weight, (1 - label) * weight)
    expected = (wins * pairs).sum() / pairs.sum() if pairs.sum() else math.nan
    assert values(scores, Truth(label, weight))["auc"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
    for value in over_two(scores, Truth(label, weight), cut):
        assert value["auc"] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def over_two(scores: np.ndarray, truth: Truth, cut: int) -> Sequence[dict[Curve, float]]:
    """Return the areas that each of two workers finds, the first of which has the rows before `cut`."""
    parts = [slice(cut), slice(cut, len(scores))]

    def work(group: Group) -> dict[Curve, float]:
        return values(scores[parts[group.rank]], truth.rows(parts[group.rank]), group=group)

    return [found for found in by_all(work, ["algo-1", "algo-2"]) if isinstance(found, dict)]


@pytest.mark.parametrize(
    ("decimals", "error"), [(2, {"auc": 1e-12, "aucpr": 1e-12}), (7, {"auc": 1e-6, "aucpr": 1e-5})]
)
def test_workers_merge_few_scores_exactly_and_count_many_in_bins(
    decimals: int, error: dict[Curve, float]
) -> None:
    scores, truth = scored(decimals, 100_000)
    assert (len(np.unique(scores)) > MOST_MERGED) == (decimals == 7)
    order = np.argsort(truth.label, kind="stable")
    whole = values(scores, truth)
    found = over_two(scores[order], truth.rows(order), 20_000)
    assert len(found) == 2
    assert found[0] == found[1]
    for curve, value in whole.items():
        assert found[0][curve] == pytest.approx(value, abs=error[curve])
