from __future__ import annotations

import numpy as np
import pytest

from smxgb.errors import UserError
from smxgb.hyperparameters import Parsed, parse
from smxgb.labels import DOMAINS, check_labels
from smxgb.store import Labels


def labels(*values: float) -> Labels:
    different = tuple(sorted(set(values)))
    return Labels(min(values), max(values), all(float(v).is_integer() for v in values), different)


def settings(**given: object) -> Parsed:
    return parse({"num_round": 1, "group_column": 1, **given})


def refusal(found: Labels, **given: object) -> str:
    with pytest.raises(UserError) as caught:
        check_labels(settings(**given), {"train": found}, rows=100)
    return caught.value.mistakes[0]


@pytest.mark.parametrize(
    ("objective", "good", "bad"),
    [
        ("binary:logistic", (0, 0.5, 1), (1, 2)),
        ("binary:logitraw", (0, 1), (-1, 1)),
        ("binary:hinge", (0, 1), (0, 0.5)),
        ("reg:logistic", (0.1, 0.9), (0, 1.5)),
        ("multi:softmax", (0, 1, 2), (0, 1.5)),
        ("multi:softprob", (0, 5), (-1, 1)),
        ("count:poisson", (0, 3), (-1, 3)),
        ("reg:gamma", (0.1, 3), (0, 3)),
        ("reg:tweedie", (0, 3), (-0.1, 3)),
        ("reg:squaredlogerror", (-0.5, 3), (-1, 3)),
        ("rank:ndcg", (0, 3), (-1, 3)),
        ("rank:pairwise", (0, 3), (-1, 3)),
        ("rank:map", (0, 1), (0, 2)),
    ],
)
def test_each_objective_takes_its_labels_and_no_others(
    objective: str, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    eval_metric = "mae" if objective.startswith("rank") else None
    check_labels(settings(objective=objective, eval_metric=eval_metric), {"train": labels(*good)}, rows=100)
    text = refusal(labels(*bad), objective=objective)
    assert f"labels {', '.join(f'{value:g}' for value in bad)}" in text
    assert f"a label is {DOMAINS[objective].rule}" in text


def test_many_labels_are_shown_as_a_range() -> None:
    text = refusal(Labels(-2.5, 7, whole=False, different=None), objective="binary:logistic")
    assert "from -2.5 to 7" in text


def test_classes_are_counted_over_the_channels() -> None:
    found = {"train": labels(0, 1), "validation": labels(0, 3)}
    assert check_labels(settings(objective="multi:softmax"), found, rows=100) == 4


def test_a_number_of_classes_that_is_too_small_is_refused_with_the_right_one() -> None:
    text = refusal(labels(*np.arange(5.0)), objective="multi:softmax", num_class=3)
    assert text.startswith("channel train has the label 4, but num_class=3 allows 0 to 2: set num_class=5")


def test_other_objectives_have_no_classes() -> None:
    assert check_labels(settings(objective="reg:squarederror"), {"train": labels(-5, 1e9)}, rows=100) is None


@pytest.mark.parametrize(
    ("metric", "objective", "good", "bad"),
    [
        ("auc", "reg:squarederror", (0, 0.5, 1), (0, 2)),
        ("aucpr", "reg:squarederror", (0, 1), (-1, 1)),
        ("ndcg@3", "reg:squarederror", (0, 31), (0, 32)),
        ("ndcg", "rank:pairwise", (0, 31), (0, 0.5)),
        ("map", "rank:pairwise", (0, 1), (0, 2)),
        ("pre@2", "reg:squarederror", (0, 1), (0, 0.5)),
        ("f1", "binary:logistic", (0, 1), (0, 0.5)),
    ],
)
def test_a_metric_takes_its_labels_and_no_others(
    metric: str, objective: str, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    check_labels(settings(objective=objective, eval_metric=metric), {"train": labels(*good)}, rows=100)
    text = refusal(labels(*bad), objective=objective, eval_metric=metric)
    assert f"but for metric {metric} a label is " in text


def test_a_metric_of_classes_takes_any_class() -> None:
    found = {"train": labels(0, 1, 2)}
    assert check_labels(settings(objective="multi:softmax", eval_metric="auc,f1"), found, rows=100) == 3


def test_high_grades_are_taken_where_the_gain_is_the_grade_itself() -> None:
    given = {"objective": "rank:ndcg", "ndcg_exp_gain": "false"}
    check_labels(settings(**given), {"train": labels(0, 40)}, rows=100)


def test_more_classes_than_rows_are_taken_for_labels_that_are_none() -> None:
    text = refusal(labels(0, 12_345), objective="multi:softmax")
    assert "has the label 12345, which makes 12,346 classes of 100 rows: number the classes" in text
