"""Models for serving predict what plain XGBoost predicts, whatever they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.serving.model import Ensemble, as_model, load_folder, load_model

if TYPE_CHECKING:
    from pathlib import Path

GENERATOR = np.random.default_rng(2)
ROWS = GENERATOR.normal(size=(200, 5)).astype(np.float32)
ROWS[GENERATOR.random(ROWS.shape) < 0.2] = np.nan
POSITIVE = np.exp(np.nan_to_num(ROWS[:, 0]))
BINARY = (POSITIVE > 1).astype(float)
CLASSES = np.digitize(POSITIVE, [0.5, 1.5]).astype(float)

MODELS: dict[str, tuple[dict[str, Any], Any]] = {
    **{
        objective: ({"objective": objective}, POSITIVE)
        for objective in (
            "reg:squarederror",
            "reg:squaredlogerror",
            "reg:pseudohubererror",
            "reg:absoluteerror",
            "reg:gamma",
            "reg:tweedie",
            "count:poisson",
            "survival:cox",
        )
    },
    **{
        objective: ({"objective": objective}, BINARY)
        for objective in ("reg:logistic", "binary:logistic", "binary:logitraw", "binary:hinge")
    },
    **{
        objective: ({"objective": objective, "num_class": 3}, CLASSES)
        for objective in ("multi:softmax", "multi:softprob")
    },
    "reg:quantileerror": ({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}, POSITIVE),
    "dart": ({"booster": "dart", "rate_drop": 0.5}, POSITIVE),
    "gblinear": ({"booster": "gblinear"}, POSITIVE),
    "several outputs": ({"multi_strategy": "multi_output_tree"}, np.column_stack([POSITIVE, BINARY])),
    "base_score": ({"objective": "binary:logistic", "base_score": 0.9}, BINARY),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["ubj", "json"])
def test_predictions_are_those_of_xgboost(tmp_path: Path, name: str, form: str) -> None:
    parameters, labels = MODELS[name]
    booster = xgb.train(parameters, xgb.DMatrix(ROWS, labels), 6)
    path = tmp_path / "xgboost-model"
    path.write_bytes(booster.save_raw(form))
    model = load_model(path)
    matrix = xgb.DMatrix(ROWS)
    assert np.array_equal(model.predict(ROWS, "margin"), booster.predict(matrix, output_margin=True))
    assert np.array_equal(model.predict(ROWS), booster.predict(matrix))


def test_the_rounds_of_an_early_stopped_model_predict() -> None:
    booster = xgb.train({}, xgb.DMatrix(ROWS, POSITIVE), 9)
    booster.set_attr(best_iteration="3")
    found = as_model(booster, "it").predict(ROWS)
    assert np.array_equal(found, booster.predict(xgb.DMatrix(ROWS), iteration_range=(0, 4)))


def test_a_model_knows_its_features_and_their_words() -> None:
    frame = pd.DataFrame(
        {"size": [1.0, 2.0] * 20, "colour": pd.Categorical(["red", "blue", "red", "red"] * 10)}
    )
    booster = xgb.train({}, xgb.DMatrix(frame, [1, 2, 1, 1] * 10, enable_categorical=True), 2)
    booster.set_attr(libsvm_indexing="1", smxgb=json.dumps({"label": "y", "infinity": "missing"}))
    signature = as_model(booster, "it").signature
    assert signature.names == ("size", "colour")
    assert signature.schema.categories == {"colour": ("blue", "red")}
    assert (signature.schema.first_index, signature.label, signature.infinity) == (1, "y", "missing")


@pytest.mark.parametrize("attribute", ["no json", "[1]", '{"label": 3, "infinity": 4}'])
def test_an_attribute_that_another_program_wrote_does_no_harm(attribute: str) -> None:
    booster = xgb.train({}, xgb.DMatrix(ROWS, POSITIVE), 1)
    booster.set_attr(smxgb=attribute)
    assert as_model(booster, "it").signature.infinity == "error"


def test_models_of_other_objectives_or_features_do_not_answer_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(xgb.train({}, xgb.DMatrix(ROWS, POSITIVE), 1).save_raw("ubj"))
    other = xgb.train({"objective": "reg:gamma"}, xgb.DMatrix(ROWS, POSITIVE), 1)
    (tmp_path / "b").write_bytes(other.save_raw("ubj"))
    with pytest.raises(
        UserError, match="a and b can't answer together: their objectives are reg:squarederror and"
    ):
        load_folder(tmp_path)
    (tmp_path / "b").write_bytes(xgb.train({}, xgb.DMatrix(ROWS[:, :3], POSITIVE), 1).save_raw("ubj"))
    with pytest.raises(UserError, match="a and b can't answer together: their features differ"):
        load_folder(tmp_path)
    assert len(load_folder(tmp_path, ensemble=False).models) == 1


def test_a_tie_of_classes_goes_to_the_lowest() -> None:
    boosters = []
    for label in (2.0, 1.0):
        labels = np.full(len(ROWS), label)
        labels[:3] = [0, 1, 2]
        parameters = {"objective": "multi:softmax", "num_class": 3}
        boosters.append(as_model(xgb.train(parameters, xgb.DMatrix(ROWS, labels), 3), str(label)))
    votes = np.stack([model.predict(ROWS) for model in boosters])
    assert (votes[0] != votes[1]).any()
    assert np.array_equal(Ensemble(tuple(boosters)).predict(ROWS), votes.min(axis=0))
