"""Each objective of XGBoost, as a job on real rows, reaches the metric of a plain XGBoost loop."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, get_args

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from examples.flights import flights
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from tests.opt_ml import csv, parquet, write_opt_ml
from tests.work import work

from smxgb.settings.metrics import default_metric
from smxgb.settings.objectives import Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ROUNDS = 12
PLAIN = {"max_depth": 4, "seed": 7}


@dataclass(frozen=True)
class Case:
    """Real rows for an objective; `settings` are those of the job, `parameters` those of XGBoost alone.

    Every table has its label first, or its two bounds.
    """

    table: Callable[[], pd.DataFrame]
    settings: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)
    metric: str | None = None


@cache
def some_flights() -> pd.DataFrame:
    """Return 6,000 flights whose delay is known, ordered by day."""
    table = flights().dropna().sample(6000, random_state=1)
    return table.sort_values(["month", "day"], kind="stable").astype(np.float32)


def delays() -> pd.DataFrame:
    return some_flights()


def is_late() -> pd.DataFrame:
    table = some_flights()
    return table.assign(arr_delay=(table["arr_delay"] > 15).astype(np.float32))


def hours_late() -> pd.DataFrame:
    """Return whole hours of delay, most of them 0."""
    table = some_flights()
    return table.assign(arr_delay=np.maximum(0, np.round(table["arr_delay"] / 60)))


def duration() -> pd.DataFrame:
    """Return the delay as a time to an event, above 0."""
    table = some_flights()
    return table.assign(arr_delay=table["arr_delay"] - table["arr_delay"].min() + 1)


def share() -> pd.DataFrame:
    table = duration()
    return table.assign(arr_delay=table["arr_delay"] / table["arr_delay"].max())


def digits() -> pd.DataFrame:
    table = load_digits(as_frame=True).frame
    return table[["target", *table.columns[:-1]]].astype(np.float32)


def delays_by_day() -> pd.DataFrame:
    """Return grades of delay, 0 to 4, with the day as the query."""
    table = some_flights()
    grade = np.clip(np.floor(table["arr_delay"] / 30), 0, 4)
    query = (table["month"] * 31 + table["day"]).astype(int)
    return pd.concat(
        [grade.rename("grade"), query.rename("query"), table[["hour", "minute", "distance", "carrier"]]],
        axis=1,
    )


def late_by_day() -> pd.DataFrame:
    table = delays_by_day()
    return table.assign(grade=(table["grade"] > 0).astype(np.float32))


def censored() -> pd.DataFrame:
    """Return the time until arrival as bounds: beyond 2 hours of delay nobody looked any more."""
    table = duration()
    limit = 150
    lower = np.minimum(table["arr_delay"], limit)
    upper = table["arr_delay"].where(table["arr_delay"] <= limit, np.inf)
    return pd.concat(
        [lower.rename("lower"), upper.rename("upper"), table.drop(columns=["arr_delay", "dep_delay"])], axis=1
    )


def hazard() -> pd.DataFrame:
    """Return times to an event; censored ones are negative, as XGBoost wants them."""
    table = duration()
    return table.assign(arr_delay=table["arr_delay"].where(table["arr_delay"] <= 150, -150))


def cancer() -> pd.DataFrame:
    table = load_breast_cancer(as_frame=True).frame
    return table[["target", *table.columns[:-1]]].sample(frac=1, random_state=2).astype(np.float32)


def diabetes() -> pd.DataFrame:
    table = load_diabetes(as_frame=True).frame
    return table[["target", *table.columns[:-1]]].astype(np.float32)


ALPHAS = "[0.1, 0.5, 0.9]"
BOUNDS = {"label_lower_column": "lower", "label_upper_column": "upper"}
TABLE: dict[str, Case] = {
    "reg:squarederror": Case(delays),
    "reg:squaredlogerror": Case(duration),
    "reg:logistic": Case(share),
    "reg:pseudohubererror": Case(delays, parameters={"huber_slope": 5}),
    "reg:absoluteerror": Case(delays),
    "reg:quantileerror": Case(delays, parameters={"quantile_alpha": ALPHAS}),
    "reg:expectileerror": Case(delays, parameters={"expectile_alpha": ALPHAS}),
    "reg:gamma": Case(duration),
    "reg:tweedie": Case(hours_late, parameters={"tweedie_variance_power": 1.3}),
    "count:poisson": Case(hours_late),
    "binary:logistic": Case(is_late, metric="auc"),
    "binary:logitraw": Case(cancer, metric="aucpr"),
    "binary:hinge": Case(is_late),
    "multi:softmax": Case(digits, parameters={"num_class": 10}, metric="merror"),
    "multi:softprob": Case(digits, parameters={"num_class": 10}),
    "rank:pairwise": Case(delays_by_day, {"group_column": "query"}, metric="ndcg@5"),
    "rank:ndcg": Case(delays_by_day, {"group_column": "query"}),
    "rank:map": Case(late_by_day, {"group_column": "query"}),
    "survival:aft": Case(
        censored, BOUNDS, {"aft_loss_distribution": "logistic", "aft_loss_distribution_scale": 0.8}
    ),
    "survival:cox": Case(hazard),
}


def plain_value(objective: Objective, case: Case, table: pd.DataFrame) -> float:
    """Return the last value of the metric in a loop of XGBoost alone, on the training rows."""
    metric = case.metric or default_metric(objective, tweedie_power=1.3).upstream
    features = table.drop(
        columns=[
            name for name in ("grade", "query", "lower", "upper", "arr_delay", "target") if name in table
        ]
    )
    if objective == "survival:aft":
        matrix = xgb.QuantileDMatrix(
            features, label_lower_bound=table["lower"], label_upper_bound=table["upper"]
        )
    else:
        matrix = xgb.QuantileDMatrix(features, table.iloc[:, 0], qid=table.get("query", None))
    history: dict[str, dict[str, list[float]]] = {}
    parameters = {
        "objective": objective,
        "eval_metric": metric,
        "seed_per_iteration": 1,
        **PLAIN,
        **case.parameters,
    }
    xgb.train(parameters, matrix, ROUNDS, evals=[(matrix, "train")], evals_result=history, verbose_eval=False)
    ((values),) = history["train"].values()
    return values[-1]


def test_the_table_has_every_objective_of_xgboost() -> None:
    assert set(TABLE) == set(get_args(Objective))


@pytest.mark.parametrize("objective", TABLE)
def test_an_objective_reaches_the_metric_of_plain_xgboost(objective: Objective, tmp_path: Path) -> None:
    case = TABLE[objective]
    table = case.table()
    settings = {"objective": objective, "num_round": ROUNDS, **PLAIN, **case.settings, **case.parameters}
    if case.metric:
        settings["eval_metric"] = case.metric
    settings.pop("num_class", None)  # counted from the labels
    as_csv = objective.startswith(("reg", "survival"))
    channel = csv(table, header=True) if as_csv else parquet(table)
    write_opt_ml(tmp_path, hyperparameters=settings, channels={"train": channel})
    done = work(tmp_path)
    assert done.code == 0, done.log
    ((name, values),) = json.loads(done.output_data["metrics.json"])["history"]["train"].items()
    assert values[-1] == pytest.approx(plain_value(objective, case, table), rel=1e-4), name
    assert done.booster().num_boosted_rounds() == ROUNDS


def test_a_ranking_with_weights_of_its_queries_is_that_of_plain_xgboost(tmp_path: Path) -> None:
    table = delays_by_day()
    weights = np.random.default_rng(4).gamma(1, size=1000).astype(np.float32)
    weighted = table.assign(weight=weights[table["query"]])
    settings = {
        "objective": "rank:ndcg",
        "num_round": ROUNDS,
        "group_column": "query",
        "weight_column": "weight",
        **PLAIN,
    }
    write_opt_ml(tmp_path, hyperparameters=settings, channels={"train": csv(weighted, header=True)})
    done = work(tmp_path)
    assert done.code == 0, done.log
    ((values),) = json.loads(done.output_data["metrics.json"])["history"]["train"].values()
    matrix = xgb.QuantileDMatrix(table.iloc[:, 2:], table["grade"], qid=table["query"])
    matrix.set_weight(weights[table["query"].drop_duplicates()])
    history: dict[str, dict[str, list[float]]] = {}
    parameters = {"objective": "rank:ndcg", "eval_metric": "ndcg@32", "seed_per_iteration": 1, **PLAIN}
    xgb.train(parameters, matrix, ROUNDS, evals=[(matrix, "train")], evals_result=history, verbose_eval=False)
    assert values[-1] == pytest.approx(history["train"]["ndcg@32"][-1], rel=1e-4)
