from __future__ import annotations

import re

import pytest

from smxgb.errors import UserError
from smxgb.rows.summary import Shape
from smxgb.settings import parse
from smxgb.training.plan import MIB, Plan, choose_matrix, make_plan

ROWS = 1_000_000


def needed(shapes: dict[str, Shape] | None = None, classes: int | None = None, **settings: object) -> float:
    """Return the bytes a row of training that a plan reckons with."""
    parameters = parse({"num_round": 1, "eval_metric": "rmse", **settings})
    shapes = shapes or {"train": Shape(ROWS, 28)}
    return make_plan(parameters, shapes, 1 << 40, classes=classes, reading=0).needed / ROWS


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "quantile"),
        ({"booster": "dart", "tree_method": "hist"}, "quantile"),
        ({"tree_method": "auto"}, "quantile"),
        ({"tree_method": "approx"}, "iterated"),
        ({"booster": "gblinear"}, "iterated"),
        ({"booster": "gblinear", "updater": "shotgun"}, "iterated"),
        ({"tree_method": "exact"}, "whole"),
        ({"updater": "grow_colmaker,prune"}, "whole"),
        ({"updater": "grow_quantile_histmaker,prune"}, "quantile"),
        ({"updater": "grow_histmaker"}, "iterated"),
        ({"updater": "grow_histmaker", "tree_method": "exact"}, "iterated"),
    ],
    ids=str,
)
def test_each_way_to_train_has_its_matrix(settings: dict[str, str], kind: str) -> None:
    assert choose_matrix(parse({"num_round": 1, **settings}).settings) == kind


def test_a_row_of_numbers_needs_a_byte_for_each_value_twice() -> None:
    assert needed() == 56 + 2 * 28
    assert needed(max_bin=512) == 56 + 4 * 28
    assert needed(eval_metric="auc", objective="binary:logistic") == needed() + 24


def test_validation_rows_need_less_than_those_that_are_trained_on() -> None:
    both = needed({"train": Shape(ROWS, 28), "validation": Shape(ROWS, 28)})
    assert needed() < both < 2 * needed()


def test_each_feature_of_sparse_rows_needs_memory_of_its_own() -> None:
    few, many = (
        needed({"train": Shape(10, columns, missing=1 - 5 / columns, sparse=True)}) * ROWS
        for columns in (1000, 1_001_000)
    )
    assert many - few == pytest.approx(750 * 1_000_000)


def test_more_outputs_need_more() -> None:
    few, many = (
        needed(classes=count, objective="multi:softprob", eval_metric="mlogloss") for count in (2, 50)
    )
    assert many - few == 48 * 12
    assert (
        needed(objective="reg:quantileerror", quantile_alpha="[0.1,0.9]", eval_metric="quantile") > needed()
    )
    assert needed(objective="reg:absoluteerror", quantile_alpha="[0.1,0.9]") == needed()


def test_missing_values_widen_the_index() -> None:
    some = needed({"train": Shape(ROWS, 28, missing=0.1)})
    most = needed({"train": Shape(ROWS, 28, missing=0.9)})
    assert needed() < some
    assert most < some


def test_the_line_of_the_log_has_a_range_around_the_estimate() -> None:
    line = Plan("quantile", 1000 * MIB, 4000 * MIB).describe()
    assert line == (
        "Matrix: quantile, about 1,000 MiB (between 700 and 1,300 MiB) of the 3.9 GiB of memory that are "
        "free."
    )


def test_a_job_that_does_not_fit_is_refused_with_the_numbers() -> None:
    Plan("quantile", 100 * MIB, 100 * MIB).check()
    with pytest.raises(UserError, match=re.escape("needs about 101 MiB of memory and 100 MiB are free")):
        Plan("quantile", 101 * MIB, 100 * MIB).check()
