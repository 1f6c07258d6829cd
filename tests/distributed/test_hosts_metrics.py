"""The metrics of several hosts are those of one host on all rows, however the rows are spread."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn import metrics as scores
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Outcome, Source, csv

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 1200
TOLERANCE = {"auc": 1e-6, "aucpr": 1e-5}
"""What the histograms of scores cost. All else is sums, which differ by the log's rounding to six digits."""


def table(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(ROWS, 4)).astype(np.float32)
    score = x[:, 0] - x[:, 1] + rng.normal(size=ROWS)
    label = {
        "binary": score > 0.5,
        "classes": np.digitize(score, [-1.0, 0.5, 2.0]),
        "number": np.exp(score / 2),
    }[kind]
    weight = rng.uniform(0.1, 3, size=ROWS).astype(np.float32)
    features = {f"x{index}": x[:, index] for index in range(4)}
    return pd.DataFrame({"y": label.astype(np.float32), "w": weight, **features}).sort_values("y")


def train(base: Path, rows: pd.DataFrame, settings: dict[str, object]) -> Outcome:
    """Train on three hosts: the first has the rows with the lowest labels, the second has none."""
    shards = [{"train": csv(part)} for part in (rows[: ROWS // 3], rows[:0], rows[ROWS // 3 :])]
    every = {"num_round": 3, "csv_weights": 1, **settings}
    with hosts_of(base, shards, every, distribution="ShardedByS3Key") as job:
        leader, *others = job.run()
    assert leader.code == 0, leader.log + others[0].log
    return leader


def logged(outcome: Outcome) -> dict[str, float]:
    line = [line for line in outcome.log.splitlines() if re.match(r"\[\d+\]\t", line)][-1]
    return {name: float(value) for name, value in (part.split(":") for part in line.split("\t")[1:])}


def by_xgboost(outcome: Outcome, rows: pd.DataFrame, metric: str) -> float:
    """Return a metric of the model that was written, computed by XGBoost on all rows at once."""
    matrix = xgb.DMatrix(rows.iloc[:, 2:].to_numpy(), rows["y"].to_numpy(), weight=rows["w"].to_numpy())
    booster = outcome.booster()
    booster.set_param({"eval_metric": metric})
    return float(booster.eval_set([(matrix, "all")]).rpartition(":")[2])


@pytest.mark.parametrize(
    ("kind", "objective", "metrics"),
    [
        ("binary", "binary:logistic", "auc,aucpr,logloss,error,error@0.3,rmse"),
        ("binary", "binary:hinge", "auc,error"),
        ("binary", "reg:logistic", "auc,aucpr,rmse"),
        ("classes", "multi:softprob", "auc,aucpr,mlogloss,merror"),
        ("classes", "multi:softmax", "auc,aucpr,merror"),
        ("number", "reg:squarederror", "rmse,mae,mape,rmsle,mphe"),
        ("number", "reg:gamma", "gamma-nloglik,gamma-deviance"),
        ("number", "reg:tweedie", "tweedie-nloglik@1.5"),
        ("number", "count:poisson", "poisson-nloglik"),
    ],
)
def test_xgboosts_metrics_are_those_of_one_host(
    tmp_path: Path, kind: str, objective: str, metrics: str
) -> None:
    rows = table(kind)
    settings: dict[str, object] = {"objective": objective, "eval_metric": metrics}
    outcome = train(tmp_path, rows, settings)
    seen = logged(outcome)
    for metric in metrics.split(","):
        expected = by_xgboost(outcome, rows, metric)
        assert seen[f"train-{metric}"] == pytest.approx(expected, rel=2e-5, abs=TOLERANCE.get(metric, 1e-6))


def test_own_metrics_are_reduced_sums(tmp_path: Path) -> None:
    rows = table("classes")
    outcome = train(
        tmp_path,
        rows,
        {"objective": "multi:softprob", "eval_metric": "accuracy,balanced_accuracy,f1_macro,recall_macro"},
    )
    predicted = outcome.predict(rows.iloc[:, 2:]).argmax(axis=1)
    weighted = {"sample_weight": rows["w"]}
    expected = {
        "accuracy": scores.accuracy_score(rows["y"], predicted, **weighted),
        "balanced_accuracy": scores.balanced_accuracy_score(rows["y"], predicted, **weighted),
        "f1_macro": scores.f1_score(rows["y"], predicted, average="macro", **weighted),
        "recall_macro": scores.recall_score(rows["y"], predicted, average="macro", **weighted),
    }
    seen = logged(outcome)
    for metric, value in expected.items():
        assert seen[f"train-{metric}"] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("metrics", ["ndcg@5,auc", "map,pre@2"])
def test_ranking_metrics_are_averages_over_all_queries(tmp_path: Path, metrics: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(900, 3)).astype(np.float32)
    label = (x[:, 0] + rng.normal(size=900) > 0.7).astype(np.float32)
    rows = pd.DataFrame({"y": label, "query": np.repeat(np.arange(90), 10), "a": x[:, 0], "b": x[:, 1]})
    first = rows["query"] < 20
    shards = [{"train": csv(rows[first], header=True)}, {"train": csv(rows[~first], header=True)}]
    settings = {"objective": "rank:ndcg", "num_round": 3, "group_column": "query", "eval_metric": metrics}
    with hosts_of(tmp_path, shards, settings) as job:
        leader, other = job.run()
    assert leader.code == other.code == 0, leader.log + other.log
    booster = leader.booster()
    matrix = xgb.DMatrix(rows[["a", "b"]], rows["y"], qid=rows["query"])
    for metric in metrics.split(","):
        booster.set_param({"eval_metric": metric})
        expected = float(booster.eval_set([(matrix, "all")]).rpartition(":")[2])
        assert logged(leader)[f"train-{metric}"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objective": "survival:cox"}, "objective=survival:cox works with one host only"),
        ({"eval_metric": "cox-nloglik"}, "metric cox-nloglik works with one host only"),
        (
            {"objective": "binary:logistic", "eval_metric": "ams@0.1"},
            "metric ams@0.1 works with one host only",
        ),
        ({"tree_method": "exact"}, "tree_method=exact works with one host only"),
        ({"booster": "gblinear"}, "booster=gblinear works with one host only"),
    ],
)
def test_what_needs_one_host_is_refused_in_a_sentence(
    tmp_path: Path, settings: dict[str, object], said: str
) -> None:
    shards = [{"train": Source({"a.csv": b"1,2\n0,3\n"}, None)}, {"train": Source({"b.csv": b"1,2\n"}, None)}]
    with hosts_of(tmp_path, shards, {"num_round": 2, **settings}) as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [2, 2]
    assert all(said in str(outcome.failure) for outcome in outcomes)
