from __future__ import annotations

import numpy as np
import pytest

from smxgb.errors import UserError
from smxgb.rows.schema import Layout, Schema
from smxgb.settings import Parsed, parse
from smxgb.settings.label_domains import Labels
from smxgb.settings.objectives import OBJECTIVES, Objective
from smxgb.training.labels import check_all_labels, check_labels


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
    objective: Objective, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    eval_metric = "mae" if objective.startswith("rank") else None
    check_labels(settings(objective=objective, eval_metric=eval_metric), {"train": labels(*good)}, rows=100)
    text = refusal(labels(*bad), objective=objective)
    assert f"labels {', '.join(f'{value:g}' for value in bad)}" in text
    domain = OBJECTIVES[objective].labels
    assert domain is not None
    assert f"a label is {domain.rule}" in text


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
        ("aucpr", "rank:pairwise", (0, 1), (0, 2)),
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
    given = settings(objective="multi:softmax", eval_metric="auc,f1", group_column=None)
    assert check_labels(given, found, rows=100) == 3


def test_high_grades_are_taken_where_the_gain_is_the_grade_itself() -> None:
    given = {"objective": "rank:ndcg", "ndcg_exp_gain": "false"}
    check_labels(settings(**given), {"train": labels(0, 40)}, rows=100)


def test_more_classes_than_rows_are_taken_for_labels_that_are_none() -> None:
    text = refusal(labels(0, 12_345), objective="multi:softmax")
    assert "has the label 12345, which makes 12,346 classes of 100 rows: number the classes" in text


def test_labels_of_some_rows_only_are_not_held_to_their_number() -> None:
    found = {"train": labels(0, 12_345)}
    assert check_labels(settings(objective="multi:softmax"), found, rows=None) == 12_346
    some = settings(objective="multi:softmax", base_score="[0.2, 0.3, 0.5]")
    assert check_labels(some, {"train": labels(0, 1)}, rows=None) == 2


def test_the_same_labels_in_both_channels_are_one_mistake() -> None:
    found = {"train": labels(1, 2), "validation": labels(1, 3)}
    with pytest.raises(UserError) as caught:
        check_labels(settings(objective="binary:logistic"), found, rows=100)
    assert caught.value.mistakes == (
        (
            "channel train has the labels 1, 2 (so has channel validation), but for "
            "objective=binary:logistic a label is a number from 0 to 1: recode the labels as 0 and 1 "
            "(class_labels=auto does so), or "
            "choose another "
            "objective."
        ),
    )


def test_a_label_that_nobody_chose_is_named_with_its_column() -> None:
    layout = Layout(("age", "income", "churn"), 3, (1, 2), (("label", 0),))
    schema = Schema(("income", "churn"), invented=False, layout=layout)
    for given, hinted in (({}, True), ({"label_column": "age"}, False)):
        with pytest.raises(UserError) as caught:
            check_labels(settings(objective="binary:logistic", **given), {"train": labels(33)}, 9, schema)
        hint = " The label is column 0 ('age'), the first one; if that is the wrong column, set label_column."
        assert (hint in caught.value.mistakes[0]) == hinted


def test_first_predictions_are_as_many_as_the_counted_classes() -> None:
    parameters = settings(objective="multi:softmax", base_score="[0.2, 0.3, 0.5]")
    assert check_labels(parameters, {"train": labels(0, 2)}, rows=10) == 3
    with pytest.raises(UserError, match="base_score has 3 numbers, and there are 4 classes"):
        check_labels(parameters, {"train": labels(0, 3)}, rows=10)


@pytest.mark.parametrize(
    ("objective", "words"),
    [("survival:cox", "a time of an event, which is above 0"), ("reg:tweedie", "some amount above 0")],
)
def test_an_objective_whose_model_would_be_nan_needs_a_label_above_0(objective: str, words: str) -> None:
    none = {"survival:cox": (-2, -1), "reg:tweedie": (0, 0)}[objective]
    parameters = settings(objective=objective)
    check_all_labels(parameters, {"train": labels(*none, 3), "validation": labels(*none)}, None)
    with pytest.raises(UserError, match=words):
        check_all_labels(parameters, {"train": labels(*none)}, None)


CURE = ": number the classes 0, 1, 2 and so on, unless such rows are to come."


def test_classes_that_no_row_has_are_said() -> None:
    channels = {"train": labels(0, 1, 3), "validation": labels(5)}
    parameters = settings(objective="multi:softmax")
    assert check_all_labels(parameters, channels, 6) == [f"No row has classes 2, 4{CURE}"]
    many = check_all_labels(
        settings(objective="multi:softmax", num_class=2_000_000_000), channels, 2_000_000_000
    )
    assert many == [f"No row has classes 2, 4, 6, 7, 8, 9, 10, 11, 12, 13 and 1,999,999,986 more{CURE}"]
    assert check_all_labels(parameters, {"train": labels(1, 2)}, 3) == [f"No row has class 0{CURE}"]


def test_a_label_that_all_rows_have_is_said() -> None:
    parameters = settings(objective="binary:logistic", eval_metric="auc")
    channels = {"train": labels(1, 1), "validation": labels(0, 1)}
    assert check_all_labels(parameters, channels, None) == [
        "Every row of train has the label 1: there is nothing to learn."
    ]
    assert not check_all_labels(parameters, {"train": labels(0, 1), "validation": labels(1, 1)}, None)


def test_labels_that_make_far_more_classes_than_there_are_labels_are_refused() -> None:
    parameters = settings(objective="multi:softmax")
    check_all_labels(parameters, {"train": labels(0, 99)}, 100)
    with pytest.raises(UserError, match=r"the 2 different labels \(0, 30000\) make 30,001 classes"):
        check_all_labels(parameters, {"train": labels(0, 30_000)}, 30_001)
    check_all_labels(
        settings(objective="multi:softmax", num_class=30_001), {"train": labels(0, 30_000)}, 30_001
    )
