"""Our models in the XGBoost of AWS's newest serving image, which is older than ours."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.image.environments import python_of
from tests.opt_ml import parquet

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from tests.image.containers import Train

PREDICT = """
import sys, numpy, xgboost
assert xgboost.__version__ == "3.2.0"
booster = xgboost.Booster(model_file=sys.argv[1])
rows = numpy.load(sys.argv[2])
numpy.save(sys.argv[3], booster.predict(xgboost.DMatrix(rows, feature_names=booster.feature_names)))
"""


@pytest.mark.filterwarnings("ignore:.*`booster=:UserWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "reg:squarederror"},
        {"objective": "binary:logistic", "base_score": 0.5},
        {"objective": "multi:softprob", "num_class": 2},
        {"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.5},
        {"objective": "reg:squarederror", "booster": "gblinear"},
    ],
    ids=str,
)
def test_a_model_predicts_the_same_in_the_serving_xgboost(
    train: Train, table: pd.DataFrame, tmp_path: Path, settings: dict[str, object]
) -> None:
    if settings["objective"] != "reg:squarederror":
        table = table.assign(y=(table["y"] > 0).astype("float32"))
    outcome = train(
        "train",
        hyperparameters={"num_round": 20, "max_depth": 4, **settings},
        channels={"train": parquet(table)},
    )
    assert outcome.code == 0, outcome.log
    assert outcome.model is not None
    features = table.drop(columns="y")
    model, rows, predicted = tmp_path / "xgboost-model", tmp_path / "rows.npy", tmp_path / "predicted.npy"
    model.write_bytes(outcome.model)
    np.save(rows, features.to_numpy())
    subprocess.run([python_of("serving"), "-c", PREDICT, model, rows, predicted], check=True)
    np.testing.assert_array_equal(np.load(predicted), outcome.predict(features))
