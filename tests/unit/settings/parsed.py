"""Settings as a job gives them, parsed: what comes of them, or the mistakes that are found."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.settings import Parsed, parse


def parsed(**raw: object) -> Parsed:
    return parse({"num_round": "10", **raw})


def mistakes(**raw: object) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        parsed(**raw)
    return caught.value.mistakes


def mistake(**raw: object) -> str:
    (text,) = mistakes(**raw)
    return text


def train(params: dict[str, object], label: list[float] | None = None) -> int:
    """Let XGBoost train three rounds, or raise its error; return how many rounds the model has."""
    rows = np.random.default_rng(0).random((60, 3), dtype=np.float32)
    matrix = xgb.DMatrix(rows, label=label or (rows[:, 0] > 0.5) + 0.0, nthread=1)
    with xgb.config_context(verbosity=0):
        booster = xgb.Booster({**params, "nthread": 1}, cache=[matrix])
        for number in range(3):
            booster.update(matrix, number)
    return int(booster.num_boosted_rounds())
