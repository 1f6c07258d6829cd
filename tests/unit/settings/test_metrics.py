from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import xgboost as xgb
from xgboost.callback import EarlyStopping

from smxgb.errors import UserError
from smxgb.settings.metrics import (
    METRICS,
    Metric,
    default_metric,
    merged_metrics,
    metric_definitions,
    monitored_metric,
    parse_metric,
    tuning_regex,
    unfit_reason,
)
from smxgb.settings.objectives import Kind, Objective, kind_of

REPOSITORY = Path(__file__).parents[3]
OBJECTIVES = get_args(Objective)
UPSTREAM = [name for name, entry in METRICS.items() if entry.source == "xgboost"]

MAXIMISED = [
    "accuracy",
    "auc",
    "aucpr",
    "balanced_accuracy",
    "f1",
    "f1_binary",
    "f1_macro",
    "map",
    "ndcg",
    "pre",
    "precision",
    "r2",
    "recall",
    "precision_macro",
    "precision_micro",
    "recall_macro",
    "recall_micro",
    "ndcg@10",
    "map@3",
    "pre@2",
    "ndcg@5-",
    "map-",
    "ams@0.1",
    "interval-regression-accuracy",
]
MINIMISED = [
    "aft-nloglik",
    "cox-nloglik",
    "error",
    "gamma-deviance",
    "gamma-nloglik",
    "logloss",
    "mae",
    "mape",
    "merror",
    "mlogloss",
    "mphe",
    "mse",
    "poisson-nloglik",
    "rmse",
    "rmsle",
    "tweedie-nloglik",
    "error@0.7",
    "tweedie-nloglik@1.3",
    "quantile",
    "expectile",
]


def evaluate(objective: str, metric: str | None, **more: object) -> str:
    """Let XGBoost train one round and return its evaluation as text, or raise its error."""
    rows = np.random.default_rng(0).random((40, 3), dtype=np.float32)
    label = np.arange(40) % 3 if objective.startswith("multi") else (rows[:, 0] > 0.5) + 0.0
    if objective == "reg:gamma":
        label = label * 0.8 + 0.1
    matrix = xgb.DMatrix(rows, label=label)
    if objective.startswith("rank") or (metric or "").startswith(("ndcg", "map", "pre")):
        matrix.set_group([20, 20])
    matrix.set_float_info("label_lower_bound", label + 0.1)
    matrix.set_float_info("label_upper_bound", label + 1)
    params = {"objective": objective, "nthread": 1, **more}
    if objective.startswith("multi"):
        params["num_class"] = 3
    if metric is not None:
        params["eval_metric"] = metric
    params |= {f"{name}_alpha": 0.5 for name in ("quantile", "expectile") if name in f"{objective} {metric}"}
    booster = xgb.Booster(params, cache=[matrix])
    booster.update(matrix, 0)
    return str(booster.eval(matrix)).removeprefix("[0]\teval-")


@pytest.mark.parametrize("text", MAXIMISED)
def test_scores_are_maximised_with_any_parameter(text: str) -> None:
    assert parse_metric(text).maximised


@pytest.mark.parametrize("text", MINIMISED)
def test_losses_are_minimised_with_any_parameter(text: str) -> None:
    assert not parse_metric(text).maximised


@pytest.mark.parametrize("text", [*UPSTREAM, "ndcg@5", "map@5", "pre@5"])
def test_the_directions_are_those_of_xgboosts_early_stopping(text: str) -> None:
    if text in {"ams", "interval-regression-accuracy"}:
        pytest.skip("a larger value is better, which XGBoost's early stopping does not know")
    rows = xgb.DMatrix(np.eye(2, dtype=np.float32), label=[0, 1])
    stopper, booster = EarlyStopping(rounds=1), xgb.train({"nthread": 1}, rows, 2)
    stopper.before_training(booster)
    stopper.after_iteration(booster, 0, {"validation": {text: [0.1]}})
    stops_when_it_rises = stopper.after_iteration(booster, 1, {"validation": {text: [0.1, 0.2]}})
    assert stops_when_it_rises == (not parse_metric(text).maximised)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_default_metric_is_the_one_that_xgboost_computes(objective: Objective) -> None:
    name, _, _ = evaluate(objective, None).partition(":")
    assert default_metric(objective).name == name


@pytest.mark.parametrize(("method", "pairs"), [("mean", 8), ("topk", 8), ("mean", None)])
def test_the_default_ranking_metric_looks_at_the_ranks_that_training_pairs(
    method: str, pairs: int | None
) -> None:
    more = {"lambdarank_pair_method": method} | ({"lambdarank_num_pair_per_sample": pairs} if pairs else {})
    name, _, _ = evaluate("rank:ndcg", None, **more).partition(":")
    assert default_metric("rank:ndcg", ranking_cut=None if method == "mean" else pairs).name == name


def test_the_default_of_tweedie_has_the_objectives_power() -> None:
    name, _, _ = evaluate("reg:tweedie", None, tweedie_variance_power=1.25).partition(":")
    assert default_metric("reg:tweedie", tweedie_power=1.25).name == name


@pytest.mark.parametrize("metric", UPSTREAM)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_metric_that_fits_is_computed_and_one_that_xgboost_refuses_does_not_fit(
    objective: Objective, metric: str
) -> None:
    parsed = parse_metric("ams@0.1" if metric == "ams" else metric)
    refused = None
    try:
        text = evaluate(objective, parsed.upstream)
    except xgb.core.XGBoostError as error:
        refused = str(error).splitlines()[0]
    else:
        assert text.startswith(parsed.upstream + ":")
    if refused and "auc <= 1.0" in refused:
        pytest.skip("auc needs labels from 0 to 1, whatever the objective")
    by_labels = refused and ("binary labels" in refused or "label_is_integer" in refused)
    if refused and not by_labels:
        assert unfit_reason(parsed, objective) is not None


@pytest.mark.parametrize(
    "text",
    [
        "error@0.5",
        "error@.70",
        "error@1e-3",
        "error@-0.5",
        "ndcg@05",
        "map@3-",
        "pre-",
        "tweedie-nloglik@1.50",
    ],
)
def test_xgboost_reports_a_metric_under_the_name_that_we_expect(text: str) -> None:
    objective = "reg:tweedie" if "tweedie" in text else "binary:logistic"
    upstream = parse_metric(text).upstream
    assert evaluate(objective, upstream).startswith(upstream + ":")


def test_a_name_keeps_the_users_spelling_in_the_log() -> None:
    metric = parse_metric(" TWEEDIE-nloglik ", tweedie_power=1.2)
    assert metric == Metric("tweedie-nloglik", "tweedie-nloglik", "tweedie-nloglik@1.2")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("acuracy", "did you mean accuracy?"),
        ("rmse_", "did you mean rmse?"),
        ("xyzzy", "there are rmse, "),
        ("", "there are rmse, "),
        ("auc@3", "auc takes no parameter; write auc."),
        ("rmse-", "a trailing dash goes with ndcg, map and pre only; write rmse."),
        ("f1@", "f1 takes no parameter"),
        ("ndcg@0", "a whole number, 1 or more, as in ndcg@10"),
        ("ndcg@2.5", "a whole number, 1 or more"),
        ("ndcg@", "a whole number, 1 or more"),
        ("ndcg@-1", "a whole number, 1 or more"),
        ("map@1@2", "write map alone, or a whole number"),
        ("error@x", "a number, as in error@0.7"),
        ("error@nan", "a number, as in error@0.7"),
        ("tweedie-nloglik@2", "from 1 up to, but not including, 2"),
        ("ams", "needs a parameter"),
    ],
)
def test_a_wrong_metric_is_refused_with_its_cure(text: str, cure: str) -> None:
    with pytest.raises(UserError, match=re.escape(cure)):
        parse_metric(text)


@pytest.mark.parametrize(
    ("metric", "objective", "cure"),
    [
        ("accuracy", "reg:squarederror", "use rmse"),
        ("f1", "count:poisson", "use rmse"),
        ("f1_binary", "multi:softmax", "use f1_macro"),
        ("precision", "multi:softprob", "use precision_macro or precision_micro"),
        ("recall", "multi:softprob", "use recall_macro or recall_micro"),
        ("error", "multi:softmax", "use merror"),
        ("merror", "binary:logistic", "use error"),
        ("rmse", "multi:softmax", "use mlogloss or merror"),
        ("r2", "multi:softmax", "use merror"),
        ("mse", "rank:ndcg", "leave it out"),
        ("aft-nloglik", "survival:cox", "leave it out"),
    ],
)
def test_a_metric_that_the_objective_leaves_undefined_has_a_reason(
    metric: str, objective: Objective, cure: str
) -> None:
    reason = unfit_reason(parse_metric(metric), objective)
    assert reason is not None
    assert reason.startswith(f"metric {metric} is for ")
    assert reason.endswith(f"not for {objective}: {cure}.")


def test_every_kind_of_objective_has_a_metric_of_its_own_kind() -> None:
    for objective in OBJECTIVES:
        assert kind_of(objective) in get_args(Kind)
        assert unfit_reason(default_metric(objective), objective) is None


def names(metrics: tuple[Metric, ...]) -> list[str]:
    return [metric.name for metric in metrics]


def test_the_users_list_comes_first_without_doubles_then_the_tuning_metric() -> None:
    default = default_metric("binary:logistic")
    asked = [parse_metric(text) for text in ("error@0.5", "auc", "error", "auc")]
    assert names(merged_metrics(asked, parse_metric("f1"), default)) == ["error@0.5", "auc", "error", "f1"]
    assert names(merged_metrics(asked, parse_metric("auc"), default)) == ["error@0.5", "auc", "error"]
    assert names(merged_metrics([], parse_metric("auc"), default)) == ["auc"]
    assert names(merged_metrics([], None, default)) == ["logloss"]


def test_early_stopping_watches_the_last_of_the_list_else_the_tuned_metric_else_the_default() -> None:
    default, auc, f1 = default_metric("binary:logistic"), parse_metric("auc"), parse_metric("f1")
    assert monitored_metric([f1, auc], f1, default) == auc
    assert monitored_metric([], f1, default) == f1
    assert monitored_metric([], None, default) == default


@pytest.mark.parametrize("tab", ["\t", "#011"])
def test_the_tuners_regexes_find_their_metric_in_the_log_and_as_cloudwatch_shows_it(tab: str) -> None:
    values = ["train-mape:2.5", "train-logloss:-0.25", "validation-mape:3.5", "validation-logloss:-0.75"]
    line = tab.join(["[12]", *values])
    for name, value in (("logloss", "-0.75"), ("mape", "3.5")):
        found = re.search(tuning_regex("validation", name), line)
        assert found is not None
        assert found[1] == value


def test_the_metric_definitions_are_compilable_and_unique() -> None:
    definitions = metric_definitions()
    assert {
        "Name": "validation:rmse",
        "Regex": r".*\[[0-9]+\].*validation-rmse:(-?[0-9.]+)",
    } in definitions
    assert len({definition["Name"] for definition in definitions}) == len(definitions)
    for definition in definitions:
        re.compile(definition["Regex"])


@pytest.mark.parametrize("path", ["README.md", "examples/one_instance.py"])
def test_the_definition_that_users_are_shown_is_the_containers(path: str) -> None:
    definition = f'{{"Name": "validation:auc", "Regex": r"{tuning_regex("validation", "auc")}"}}'
    assert definition in (REPOSITORY / path).read_text()


@pytest.fixture(autouse=True)
def _xgboosts_own_warnings_are_no_concern_here() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
