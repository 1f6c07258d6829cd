from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost as xgb
from tests.unit.settings.parsed import parsed, train

from smxgb.errors import UserError
from smxgb.settings import resolve_constraints

NAMES = ("age", "height", "weight")


@pytest.mark.parametrize(
    "text",
    [
        "(1,0,-1)",
        "[1, 0, -1]",
        '{"age": 1, "weight": -1}',
        "{'weight': -1, 'age': 1}",
        "1,0,-1",
        "(1.0,0,-1)",
    ],
)
def test_monotone_constraints_by_position_or_name(text: str) -> None:
    params = resolve_constraints(parsed(monotone_constraints=text).settings, NAMES)
    assert params == {"monotone_constraints": "(1,0,-1)"}
    train(params)


def test_one_direction_is_enough_for_the_first_feature() -> None:
    params = resolve_constraints(parsed(monotone_constraints="(1)").settings, NAMES)
    assert params == {"monotone_constraints": "(1)"}
    train(params)


@pytest.mark.parametrize(
    "text", ["[[0,1],[2]]", '[["age", "height"], ["weight"]]', "[['age',1],[2]]", "((0,1),(2,))"]
)
def test_interaction_constraints_by_position_or_name(text: str) -> None:
    params = resolve_constraints(parsed(interaction_constraints=text).settings, NAMES)
    assert params == {"interaction_constraints": "[[0, 1], [2]]"}
    train(params)


def test_constraints_on_features_that_are_not_there_are_refused_together() -> None:
    settings = parsed(
        monotone_constraints='{"agee": 1}', interaction_constraints='[["heigt", 1], [3], [-1], ["zzz"]]'
    ).settings
    with pytest.raises(UserError) as caught:
        resolve_constraints(settings, NAMES)
    range_text = "the 3 features count from 0 to 2, without the label."
    assert caught.value.mistakes == (
        "monotone_constraints: there is no feature 'agee'; did you mean 'age'?",
        "interaction_constraints: there is no feature 'heigt'; did you mean 'height'?",
        f"interaction_constraints: there is no feature 3; {range_text}",
        f"interaction_constraints: there is no feature -1; {range_text}",
        "interaction_constraints: there is no feature 'zzz'; the first are age, height, weight.",
    )


def test_more_directions_than_features_are_refused() -> None:
    with pytest.raises(UserError, match="has 4 directions for 3 features"):
        resolve_constraints(parsed(monotone_constraints="(1,0,0,1)").settings, NAMES)


def test_no_constraints_mean_no_parameters() -> None:
    assert resolve_constraints(parsed().settings, NAMES) == {}


def test_a_monotone_feature_really_is_monotone() -> None:
    settings = parsed(monotone_constraints='{"height": -1}').settings
    rows = np.random.default_rng(1).random((500, 3), dtype=np.float32)
    label = rows[:, 1] + np.random.default_rng(2).normal(0, 0.1, 500)
    matrix = xgb.DMatrix(rows, label=label)
    booster = xgb.train({"nthread": 1, **resolve_constraints(settings, NAMES)}, matrix, 10)
    probe = np.full((50, 3), 0.5, dtype=np.float32)
    probe[:, 1] = np.linspace(0, 1, 50)
    assert (np.diff(booster.predict(xgb.DMatrix(probe))) <= 0).all()


@pytest.mark.parametrize(
    ("group", "positions"), [("[[2, 0]]", [2, 1]), ('[["2", "a"]]', [2, 0]), ("[[1]]", [1])]
)
def test_a_name_that_is_a_number_comes_before_the_position(
    group: str, positions: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    job = parsed(interaction_constraints=group)
    found = resolve_constraints(job.settings, ["a", "0", "2"])
    assert json.loads(str(found["interaction_constraints"])) == [positions]
    line = "interaction_constraints: 0 is taken for the name of feature 1, not for the position of 'a'.\n"
    assert (line in capsys.readouterr().out) == (group == "[[2, 0]]")
