from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost as xgb

from smxgb.training.model import can_be_cut, cut, predict_alike, with_scaled_leaves


def trained(rounds: int = 6, **parameters: object) -> tuple[xgb.Booster, xgb.DMatrix]:
    x = np.random.default_rng(1).normal(size=(200, 3))
    matrix = xgb.DMatrix(x, x[:, 0] * 2 - x[:, 1])
    return xgb.train({"max_depth": 3, "seed": 1, **parameters}, matrix, rounds), matrix


def test_a_model_with_dropout_predicts_the_same_as_plain_trees() -> None:
    booster, matrix = trained(rate_drop=0.5, num_parallel_tree=2)
    plain = with_scaled_leaves(booster)
    assert b"weight_drop" in booster.save_raw("json")
    assert b"weight_drop" not in plain.save_raw("json")
    np.testing.assert_allclose(plain.predict(matrix), booster.predict(matrix), rtol=1e-6, atol=1e-6)


def test_trees_of_several_outputs_with_dropout_predict_the_same_as_plain_trees() -> None:
    x = np.random.default_rng(1).normal(size=(300, 3))
    matrix = xgb.DMatrix(x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 0))
    parameters = {"objective": "multi:softprob", "num_class": 3, "multi_strategy": "multi_output_tree"}
    booster = xgb.train({**parameters, "rate_drop": 0.5, "seed": 1}, matrix, 8)
    plain = with_scaled_leaves(booster)
    assert b"weight_drop" not in plain.save_raw("json")
    np.testing.assert_allclose(plain.predict(matrix), booster.predict(matrix), rtol=1e-5, atol=1e-6)


def test_a_model_that_predicts_otherwise_is_told_from_the_one_that_was_trained() -> None:
    booster, _ = trained(rate_drop=0.5)
    model = json.loads(booster.save_raw("json"))
    del model["learner"]["gradient_booster"]["model"]["weight_drop"]
    other = xgb.Booster(model_file=bytearray(json.dumps(model).encode()))
    assert other.num_boosted_rounds() == booster.num_boosted_rounds()
    assert predict_alike(booster, booster.copy())
    assert not predict_alike(booster, other)


@pytest.mark.parametrize("parameters", [{}, {"num_parallel_tree": 2}, {"subsample": 0.5}], ids=str)
def test_a_model_that_can_be_cut_becomes_that_of_fewer_rounds(parameters: dict[str, object]) -> None:
    assert can_be_cut(parameters)
    longer, _ = trained(6, **parameters)
    shorter, _ = trained(4, **parameters)
    assert cut(longer, 4).get_dump(with_stats=True) == shorter.get_dump(with_stats=True)


@pytest.mark.parametrize(
    "parameters", [{"booster": "dart"}, {"rate_drop": 0.5}, {"booster": "gblinear"}], ids=str
)
def test_dropout_and_linear_models_can_not_be_cut(parameters: dict[str, object]) -> None:
    assert not can_be_cut(parameters)
