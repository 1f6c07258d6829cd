from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost as xgb
from tests.unit.settings.parsed import parsed

from smxgb.errors import UserError
from smxgb.settings import booster_params, parse
from smxgb.settings.hyperparameters import OBSOLETE


def test_the_settings_of_a_typical_notebook_are_taken_unchanged() -> None:
    job = parse(
        {
            "objective": "reg:linear",
            "silent": "0",
            "num_round": "50",
            "max_depth": "5",
            "eta": "0.2",
            "gamma": "4",
            "min_child_weight": "6",
            "subsample": "0.7",
        }
    )
    assert booster_params(job) == {
        "objective": "reg:squarederror",
        "verbosity": 1,
        "max_depth": 5,
        "eta": 0.2,
        "gamma": 4.0,
        "min_child_weight": 6.0,
        "subsample": 0.7,
        "seed_per_iteration": 1,
    }
    assert job.settings.num_round == 50
    assert job.notes == (
        "objective=reg:linear is an old name: taken as reg:squarederror.",
        "silent='0' is an old name: taken as verbosity=1.",
    )


OLD_VALUES = {"sketch_eps": "0.03", "predictor": "cpu_predictor", "dsplit": "row"}


@pytest.mark.parametrize("name", OBSOLETE)
def test_an_obsolete_name_is_accepted_with_one_line(name: str) -> None:
    value = OLD_VALUES.get(name, "1")
    (note,) = parsed(**{name: value}).notes
    assert note.startswith(f"{name}={value!r} is ")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("sketch_eps", "0", "a number above 0 and below 1"),
        ("sketch_eps", "1", "a number above 0 and below 1"),
        ("sketch_eps", "small", "a number above 0 and below 1"),
        ("sketch_eps", "nan", "a number above 0 and below 1"),
        ("predictor", "gpu", "one of auto, cpu_predictor, gpu_predictor"),
        ("dsplit", "both", "one of row, col"),
        ("lambda_bias", "-0.1", "a number from 0 to 1"),
        ("prob_buffer_row", "2", "a number from 0 to 1"),
        ("deterministic_histogram", "maybe", "true or false"),
        ("single_precision_histogram", "2", "true or false"),
        ("silent", "loud", "true or false"),
        ("gpu_id", "first", "a whole number"),
        ("n_gpus", "1.5", "a whole number"),
    ],
)
def test_an_obsolete_setting_keeps_its_range(name: str, value: str, allowed: str) -> None:
    with pytest.raises(UserError) as caught:
        parsed(**{name: value})
    assert caught.value.mistakes == (
        f"{name}={value!r} is not allowed: it must be {allowed}, or be left out.",
    )


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"silent": "1"}, "verbosity", 0),
        ({"silent": "False"}, "verbosity", 1),
        ({"silent": "1", "verbosity": "2"}, "verbosity", 2),
        ({"gpu_id": "0"}, "device", "cuda"),
        ({"gpu_id": "-1"}, "device", "cpu"),
        ({"n_gpus": "2"}, "device", "cuda"),
        ({"n_gpus": "0"}, "device", "cpu"),
        ({"n_gpus": "2", "device": "cpu"}, "device", "cpu"),
        ({"tree_method": "gpu_hist"}, "device", "cuda"),
        ({"tree_method": "gpu_hist"}, "tree_method", "hist"),
        ({"tree_method": '"GPU_HIST"', "device": "cpu"}, "device", "cpu"),
        ({"tree_method": "gpu_hist", "n_gpus": "0"}, "device", "cuda"),
        ({"device": "cuda:1"}, "device", "cuda"),
        ({"device": "gpu"}, "device", "cuda"),
        ({"updater": "sync,grow_colmaker"}, "updater", ("grow_colmaker",)),
        ({"updater": "sync"}, "updater", None),
    ],
)
def test_old_names_and_values_become_those_of_today_with_a_line_each(
    raw: dict[str, object], field: str, value: object
) -> None:
    job = parsed(**raw)
    assert getattr(job.settings, field) == value
    assert len(job.notes) == len(set(raw) - {"verbosity"} - ({"device"} if len(raw) > 1 else set()))


def test_classes_without_an_objective_mean_softmax_as_in_xgboost_itself() -> None:
    job = parsed(num_class="3")
    assert job.settings.objective == "multi:softmax"
    assert job.metrics[0].name == "mlogloss"
    matrix = xgb.DMatrix(np.eye(3, dtype=np.float32), label=[0, 1, 2])
    booster = xgb.train({"num_class": 3, "nthread": 1}, matrix, 1)
    assert json.loads(booster.save_config())["learner"]["objective"]["name"] == "multi:softmax"
