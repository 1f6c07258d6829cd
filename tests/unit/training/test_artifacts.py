from __future__ import annotations

import csv
import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from smxgb.rows.schema import Schema
from smxgb.training.artifacts import stage_importance, stage_model, stage_report

if TYPE_CHECKING:
    from pathlib import Path

NAMED = Schema(("age", "height [m]", "weight"), invented=False)


def trained(**parameters: object) -> tuple[xgb.Booster, xgb.DMatrix]:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(200, 3))
    matrix = xgb.DMatrix(x, x[:, 0] * 2 - x[:, 1], feature_names=["f0", "f1", "f2"])
    return xgb.train({"max_depth": 3, **parameters}, matrix, 6), matrix


def test_a_staged_model_stands_alone_and_has_no_name_yet(tmp_path: Path) -> None:
    booster, _ = trained()
    staged = stage_model(booster, NAMED, tmp_path / "model")
    assert list(staged.parent.iterdir()) == [staged]
    assert staged.name == ".smxgb-xgboost-model"
    assert xgb.Booster(model_file=bytearray(staged.read_bytes())).feature_names == list(NAMED.names)


def test_names_of_our_making_are_not_in_the_model(tmp_path: Path) -> None:
    booster, matrix = trained()
    expected = booster.predict(matrix)
    path = stage_model(booster, Schema.unnamed(3), tmp_path)
    model = xgb.Booster(model_file=bytearray(path.read_bytes()))
    assert model.feature_names is None
    array = xgb.DMatrix(matrix.get_data().toarray())
    np.testing.assert_array_equal(model.predict(array), expected)


def test_every_feature_has_a_row_of_importance_the_most_important_first(tmp_path: Path) -> None:
    booster, _ = trained()
    with stage_importance(booster, NAMED, tmp_path, linear=False).open() as stream:
        rows = list(csv.DictReader(stream))
    scores = booster.get_score(importance_type="gain")
    assert {row["feature"]: float(row["gain"]) for row in rows} == {
        name: pytest.approx(scores.get(internal, 0))
        for name, internal in zip(NAMED.names, ("f0", "f1", "f2"), strict=True)
    }
    gains = [float(row["gain"]) for row in rows]
    assert gains == sorted(gains, reverse=True)


def test_the_report_is_json_without_nan(tmp_path: Path) -> None:
    report = {"history": {"train": {"auc": [0.5, math.nan]}}, "best": math.inf}
    text = stage_report(report, tmp_path / "data").read_text()
    assert json.loads(text) == {"history": {"train": {"auc": [0.5, None]}}, "best": None}
    assert "NaN" not in text


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_linear_model_and_one_of_categories_are_the_models_they_were(tmp_path: Path) -> None:
    linear, _ = trained(booster="gblinear", max_depth=None)
    assert stage_model(linear, NAMED, tmp_path).read_bytes() == linear.save_raw("ubj")
    generator = np.random.default_rng(2)
    table = pd.DataFrame({"age": pd.Categorical(generator.choice(list("abcdefgh"), 200)), "b": range(200)})
    table["c"] = 1.0
    matrix = xgb.DMatrix(table, generator.normal(size=200), enable_categorical=True)
    booster = xgb.train({"max_cat_to_onehot": 2}, matrix, 5)
    staged = stage_model(booster, NAMED, tmp_path)
    loaded = xgb.Booster(model_file=bytearray(staged.read_bytes()))
    found, expected = (each.predict(matrix, validate_features=False) for each in (loaded, booster))
    np.testing.assert_array_equal(found, expected)
