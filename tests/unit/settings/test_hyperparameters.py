from __future__ import annotations

from typing import get_args

import pytest
import xgboost as xgb
from tests.unit.settings.parsed import parsed, train

from smxgb.settings import booster_params, resolve_constraints, upstream
from smxgb.settings.description import choices
from smxgb.settings.hyperparameters import NAMES, TRAITS
from smxgb.settings.objectives import Objective

OF_XGBOOST = [name for name, trait in TRAITS.items() if trait.use == "xgboost"]


def test_the_objectives_are_those_of_xgboost() -> None:
    complaint = ""
    try:
        train({"objective": "none"})
    except xgb.core.XGBoostError as error:
        complaint = str(error)
    listed = {
        line.split(": ")[1] for line in complaint.splitlines() if line.startswith("Objective candidate")
    }
    assert listed == {*get_args(Objective), "reg:linear"}


def test_every_name_that_xgboost_reports_is_declared_passed_through_or_internal() -> None:
    assert upstream.known_names() - set(NAMES) == {
        "boost_from_average",
        "disable_default_eval_metric",
        "feature_selector",
        "sparse_threshold",
        "tolerance",
        "validate_parameters",
    }


SAMPLES: dict[str, object] = {
    "objective": "reg:gamma",
    "num_class": "3",
    "device": "cpu",
    "quantile_alpha": "[0.1,0.5]",
    "expectile_alpha": "0.1",
    "process_type": "default",
    "updater": "grow_colmaker,prune",
    "monotone_constraints": "(1,0,-1)",
    "interaction_constraints": "[[0,1],[2]]",
    "max_bin": "16",
    "label_lower_column": "0",
}


OWNERS = {
    "num_class": {"objective": "multi:softprob"},
    "quantile_alpha": {"objective": "reg:quantileerror"},
    "expectile_alpha": {"objective": "reg:expectileerror"},
    "tweedie_variance_power": {"objective": "reg:tweedie"},
    "huber_slope": {"objective": "reg:pseudohubererror"},
    "ndcg_exp_gain": {"objective": "rank:ndcg"},
    "scale_pos_weight": {"objective": "binary:logistic"},
}


@pytest.mark.parametrize("name", OF_XGBOOST)
def test_each_declared_parameter_is_one_that_xgboost_uses(name: str) -> None:
    owner = OWNERS.get(name, {"objective": "rank:ndcg"} if name.startswith("lambdarank") else {})
    if name.startswith("aft"):
        owner = {"objective": "survival:aft", "label_lower_column": "1", "label_upper_column": "2"}
    text = SAMPLES.get(name, next(reversed(choices(name)), "1.5" if "power" in name else "1"))
    job = parsed(**owner, **{name: text})
    answer = upstream.ask(booster_params(job) | resolve_constraints(job.settings, ["a", "b", "c"]))
    assert answer == upstream.Answer(None, frozenset())
    for alias in TRAITS[name].aliases:
        assert upstream.ask({alias: "1"}) == upstream.Answer(None, frozenset())
