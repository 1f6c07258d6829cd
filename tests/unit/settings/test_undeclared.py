from __future__ import annotations

import pytest
from tests.unit.settings.parsed import mistake, parsed, train

from smxgb.settings import booster_params


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("colsample_by_tree", "did you mean colsample_bytree?"),
        ("learnin_rate", "did you mean learning_rate?"),
        ("max_bins", "did you mean max_bin?"),
        ("Max_Depth", "did you mean max_depth?"),
        ("n_estimators", "did you mean num_round?"),
        ("num_boost_round", "did you mean num_round?"),
        ("early-stopping-rounds", "did you mean early_stopping_rounds?"),
        ("sparse_treshold", "did you mean sparse_threshold?"),
        ("num_feature", "XGBoost sets it itself; leave it out."),
        ("rng_state", "XGBoost sets it itself; leave it out."),
        ("xyzzy", "leave it out; `smxgb describe` lists all."),
        ("x" * 3000, "leave it out; `smxgb describe` lists all."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, cure: str) -> None:
    shown = name if len(name) < 60 else "x" * 57 + "..."
    assert mistake(**{name: "1"}) == f"{shown} is not a hyperparameter: {cure}"


def test_a_nul_ends_neither_a_name_nor_a_value() -> None:
    assert mistake(**{"eta\0junk": "0.1"}).startswith(r"eta\x00junk is not a hyperparameter: ")
    assert mistake(sparse_threshold="0.5\0junk") == (
        r"sparse_threshold='0.5\x00junk' is not allowed: it holds a NUL."
    )


def test_the_value_of_an_unknown_name_is_never_said() -> None:
    assert "AKIA5" not in mistake(aws_secret_access_key="AKIA5")  # noqa: S106 - it is none


@pytest.mark.parametrize("name", ["report", "shap_rows"])
def test_a_setting_that_this_version_has_not_is_unknown(name: str) -> None:
    assert mistake(**{name: "1"}).startswith(f"{name} is not a hyperparameter: ")


@pytest.mark.parametrize("selector", ["greedy", "thrifty", "random"])
def test_a_selector_of_features_needs_its_updater(selector: str) -> None:
    assert mistake(booster="gblinear", feature_selector=selector) == (
        f"feature_selector={selector} needs updater=coord_descent: set that too."
    )


@pytest.mark.parametrize(
    ("raw", "passed"),
    [
        ({"sparse_threshold": '"0.5"'}, {"sparse_threshold": 0.5}),
        ({"validate_parameters": "True"}, {"validate_parameters": "True"}),
        (
            {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "greedy", "top_k": "2.0"},
            {"feature_selector": "greedy", "top_k": 2},
        ),
    ],
)
def test_what_xgboost_takes_beyond_the_table_is_passed_through(
    raw: dict[str, object], passed: dict[str, object]
) -> None:
    job = parsed(**raw)
    assert job.extra == passed
    assert job.notes == ()
    train(booster_params(job))


def test_a_parameter_that_has_no_effect_is_passed_with_a_line() -> None:
    job = parsed(feature_selector="greedy")
    assert job.notes == ("feature_selector has no effect with the job's booster and objective.",)


def test_a_value_that_xgboost_refuses_is_reported_in_its_words() -> None:
    raw = {"booster": "gblinear", "feature_selector": "best", "sparse_threshold": "none"}
    text = mistake(**raw)
    assert text.startswith(
        "feature_selector='best' is not allowed: XGBoost says: Invalid Input: 'best', valid "
    )
    assert "\n" not in text
