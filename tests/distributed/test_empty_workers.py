"""Workers without a row to train on: the others train what they would have trained without them."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.distributed.dask_hosts import dask_hosts, rows_of
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Outcome, Source, csv, libsvm, parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 900
NOTHING = Source({"_SUCCESS": b"x"}, None)
SAMPLED = {"num_round": 8, "max_depth": 3, "subsample": 0.7, "colsample_bytree": 0.5, "colsample_bynode": 0.7}
"""With both rows and columns drawn at random, XGBoost falls apart where a worker has no row."""


@pytest.fixture
def table() -> pd.DataFrame:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32).round(3)
    label = (x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3]).round(3)
    return pd.DataFrame({"y": label, **{f"x{index}": x[:, index] for index in range(6)}})


def trained(outcomes: list[Outcome]) -> Outcome:
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), "\n".join(o.log for o in outcomes)
    return outcomes[0]


def last(outcome: Outcome, metric: str) -> float:
    return float(re.findall(rf"{metric}:([\d.]+)", outcome.log)[-1])


def assert_the_model_is_what_the_log_says(leader: Outcome, table: pd.DataFrame) -> None:
    found = leader.booster().predict(xgb.DMatrix(table.drop(columns="y").to_numpy()), validate_features=False)
    error = float(np.sqrt(np.mean((found - table["y"]) ** 2)))
    assert error < table["y"].std()
    assert last(leader, "train-rmse") == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("write", [csv, parquet, libsvm])
@pytest.mark.parametrize("empty", [0, 1])
def test_rows_and_columns_may_be_drawn_at_random(
    tmp_path: Path, table: pd.DataFrame, write: Callable[[pd.DataFrame], Source], empty: int
) -> None:
    shards = [{"train": write(table)}]
    shards.insert(empty, {"train": NOTHING})
    with hosts_of(tmp_path, shards, SAMPLED, distribution="ShardedByS3Key") as job:
        leader = trained(job.run())
    assert_the_model_is_what_the_log_says(leader, table)


def test_so_they_may_in_the_dask_mode(tmp_path: Path, table: pd.DataFrame) -> None:
    packed = Source({"a.csv.gz": gzip.compress(table.to_csv(index=False, header=False).encode())}, "text/csv")
    with dask_hosts(tmp_path, [{"train": packed}], SAMPLED) as job:
        leader = trained(job.run())
    [counts], _ = rows_of(leader)
    assert sorted(counts) == [0, ROWS]
    assert_the_model_is_what_the_log_says(leader, table)


def test_queries_of_libsvm_files_keep_their_own_auc(tmp_path: Path, table: pd.DataFrame) -> None:
    query = np.arange(ROWS) // 10
    relevant = (table["y"] > 0.5).astype(int)
    features = table.drop(columns="y").to_numpy()
    lines = [
        f"{label} qid:{number} " + " ".join(f"{index}:{value}" for index, value in enumerate(row))
        for label, number, row in zip(relevant, query, features, strict=True)
    ]
    shards = [
        {"train": Source({"a": "\n".join(part).encode()}, "libsvm")} if part else {"train": NOTHING}
        for part in ([], lines[:300], lines[300:])
    ]
    settings = {"num_round": 4, "max_depth": 3, "objective": "rank:ndcg", "eval_metric": "auc,ndcg"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        leader = trained(job.run())
    booster = leader.booster()
    matrix = xgb.DMatrix(features, relevant, qid=query)
    for metric in ("auc", "ndcg@32"):
        booster.set_param({"eval_metric": metric, "disable_default_eval_metric": 1})
        expected = float(re.findall(rf"{metric}:([\d.]+)", booster.eval_set([(matrix, "train")]))[-1])
        said = "ndcg" if metric == "ndcg@32" else metric
        assert last(leader, f"train-{said}") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("empty", [0, 1])
def test_quantiles_need_no_rows_of_a_worker_if_base_score_is_given(
    tmp_path: Path, table: pd.DataFrame, empty: int
) -> None:
    settings = {"objective": "reg:quantileerror", "quantile_alpha": 0.3, "base_score": 0.5, "max_depth": 3}
    shards = [{"train": csv(table)}]
    shards.insert(empty, {"train": NOTHING})
    chosen = {**settings, "num_round": 8}
    with hosts_of(tmp_path, shards, chosen, distribution="ShardedByS3Key") as job:
        leader = trained(job.run())
    features = table.drop(columns="y").to_numpy()
    alone = xgb.train(settings, xgb.QuantileDMatrix(features, table["y"]), 8)
    found = leader.booster().predict(xgb.DMatrix(features), validate_features=False)
    assert found == pytest.approx(alone.predict(xgb.DMatrix(features)), abs=1e-5)


@pytest.mark.parametrize(
    ("objective", "settings", "why"),
    [
        ("reg:absoluteerror", {"base_score": 0.5}, "XGBoost 3.4.1 fails there"),
        ("reg:quantileerror", {"quantile_alpha": 0.3}, "XGBoost 3.4.1 can't estimate base_score there"),
    ],
)
def test_an_objective_that_needs_rows_of_every_worker_is_refused(
    tmp_path: Path, table: pd.DataFrame, objective: str, settings: dict[str, object], why: str
) -> None:
    chosen = {"num_round": 2, "objective": objective, **settings}
    shards = [{"train": NOTHING}, {"train": csv(table)}]
    with hosts_of(tmp_path, shards, chosen, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [2, 2]
    assert str(outcomes[0].failure).startswith(
        f"UserError: channel train has no row for a worker of 127.0.0.1: with objective={objective} {why}"
    )
