from __future__ import annotations

import pickle

import numpy as np
import pytest
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.saved_models import check_format


def model(booster: str) -> xgb.Booster:
    x = np.arange(12.0).reshape(6, 2)
    return xgb.train({"booster": booster}, xgb.DMatrix(x, x[:, 0]), 1)


def refusal(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        check_format(data, "train/xgboost-model")
    [text] = caught.value.mistakes
    return text


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("booster", ["gbtree", "gblinear", "dart"])
@pytest.mark.parametrize("form", ["json", "ubj"])
def test_what_xgboost_writes_today_is_taken_and_its_pickle_is_not(booster: str, form: str) -> None:
    made = model(booster)
    check_format(made.save_raw(form), "a")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert " is a pickled model, " in refusal(pickle.dumps(made, protocol))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty: write the model with"),
        (b"binf\0\0\0?", "is a binary model of XGBoost up to 1.7"),
        (b"\0\0\0?" + bytes(160) + b"\x06" + bytes(7) + b"gbtree", "is a binary model of XGBoost up to 1.7"),
        (b"y,a,b\n1,2,3\n", "is no model of XGBoost, or is damaged"),
        (pickle.dumps({"a": 1}, 0), "is no model of XGBoost, or is damaged"),
    ],
)
def test_every_other_file_is_refused_with_how_to_write_it(data: bytes, said: str) -> None:
    text = refusal(data)
    assert text.startswith(f"train/xgboost-model {said}")
    assert text.endswith("with booster.save_model('xgboost-model.ubj').")
