"""Categories on several hosts: each has words that the others lack, and some have no row at all."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.metrics import accuracy_score, log_loss, ndcg_score, roc_auc_score
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Outcome, Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.distributed.hosts import Channels

    type Write = Callable[[pd.DataFrame], Source]

SETTINGS = {"num_round": 4, "max_depth": 3}
ROWS = 600
NOTHING = Source({"_SUCCESS": b"x"}, None)


def named(frame: pd.DataFrame) -> Source:
    return csv(frame, header=True)


def in_any_order(frame: pd.DataFrame) -> Source:
    """Return a Parquet channel whose dictionary has the words as they come, not in order."""
    words = pd.Categorical(frame["word"], categories=list(dict.fromkeys(frame["word"]))[::-1])
    return parquet(frame.assign(word=words))


WAYS: dict[str, tuple[Write, dict[str, object]]] = {
    "csv": (named, {"categorical_columns": "word"}),
    "parquet": (in_any_order, {"enable_categorical": "true"}),
}


@pytest.fixture
def table() -> pd.DataFrame:
    """Return rows sorted by their word, so that no two hosts have many words in common."""
    generator = np.random.default_rng(8)
    word = np.sort(generator.integers(0, 12, ROWS))
    # Fewer different numbers than bins: the sketches of several hosts merge into that of one.
    x = generator.integers(0, 30, ROWS).astype(np.float32)
    label = (np.sin(word * 7) + x / 30).astype(np.float32)
    return pd.DataFrame({"y": label, "word": [f"w{number:02}" for number in word], "x": x})


def by_one(table: pd.DataFrame, **parameters: object) -> xgb.Booster:
    """Train on the whole table as one batch."""
    matrix = xgb.QuantileDMatrix(categorical(table), table["y"], enable_categorical=True)
    return xgb.train({"max_depth": 3, **parameters}, matrix, SETTINGS["num_round"])


def categorical(table: pd.DataFrame) -> pd.DataFrame:
    return table[["word", "x"]].astype({"word": "category"})


def predictions(outcome: Outcome, table: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float32]]:
    return outcome.booster().predict(xgb.DMatrix(categorical(table), enable_categorical=True))


def trees(booster: xgb.Booster) -> list[dict[str, list[float]]]:
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
    return list(model["trees"])


def assert_same_trees(found: xgb.Booster, expected: xgb.Booster) -> None:
    """Compare splits exactly, and the values of leaves to what the order of sums leaves over."""
    assert len(trees(found)) == len(trees(expected)) == SETTINGS["num_round"]
    for one, other in zip(trees(found), trees(expected), strict=True):
        for part in ("left_children", "right_children", "split_indices", "split_type", "categories"):
            assert one[part] == other[part]
        np.testing.assert_allclose(one["split_conditions"], other["split_conditions"], rtol=0, atol=1e-5)


def assert_trained(outcomes: list[Outcome]) -> Outcome:
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), "\n".join(o.log for o in outcomes)
    return outcomes[0]


@pytest.mark.parametrize("way", WAYS)
def test_hosts_with_different_categories_train_the_trees_of_one(
    tmp_path: Path, table: pd.DataFrame, way: str
) -> None:
    write, settings = WAYS[way]
    shards: list[Channels] = [
        {"train": write(table[:200]), "validation": write(table[::9])},
        {"train": write(table[200:])},
    ]
    with hosts_of(tmp_path, shards, {**SETTINGS, **settings}, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    oracle = by_one(table)
    assert_same_trees(leader.booster(), oracle)
    found = predictions(leader, table)
    np.testing.assert_allclose(found, oracle.inplace_predict(categorical(table)), atol=1e-5)
    error = np.sqrt(np.mean((found[::9] - table["y"][::9]) ** 2))
    values = re.findall(r"validation-rmse:([\d.]+)", leader.log)
    assert float(values[-1]) == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sizes", [(0, ROWS, 0), (0, 250, 350)])
def test_hosts_without_rows_leave_the_trees_as_they_are(
    tmp_path: Path, table: pd.DataFrame, way: str, sizes: tuple[int, ...]
) -> None:
    write, settings = WAYS[way]
    ends = np.cumsum(sizes)
    shards: list[Channels] = [
        {"train": write(table[end - size : end]) if size else NOTHING}
        for end, size in zip(ends, sizes, strict=True)
    ]
    with hosts_of(tmp_path, shards, {**SETTINGS, **settings}, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    listed = ", ".join(f"127.0.0.{number} {size}" for number, size in enumerate(sizes, start=1))
    assert f"Rows of train: {listed}; together {ROWS}." in leader.log
    oracle = by_one(table)
    assert_same_trees(leader.booster(), oracle)
    np.testing.assert_allclose(
        predictions(leader, table), oracle.inplace_predict(categorical(table)), atol=1e-5
    )


def test_a_host_without_rows_changes_no_metric_nor_weight(tmp_path: Path, table: pd.DataFrame) -> None:
    weight = np.where(table["x"] > 9, 2.0, 0.5)
    rows = table.assign(y=(table["y"] > 0.4).astype(np.float32), w=weight)
    shards: list[Channels] = [
        {"train": NOTHING, "validation": NOTHING},
        {"train": named(rows[:300]), "validation": named(rows[::7])},
        {"train": named(rows[300:]), "validation": NOTHING},
    ]
    settings = {
        **SETTINGS,
        "objective": "binary:logistic",
        "categorical_columns": "word",
        "weight_column": "w",
        "eval_metric": "auc,logloss,accuracy",
    }
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        leader = assert_trained(job.run())
    matrix = xgb.QuantileDMatrix(categorical(rows), rows["y"], weight=weight, enable_categorical=True)
    oracle = xgb.train({"max_depth": 3, "objective": "binary:logistic"}, matrix, 4)
    assert_same_trees(leader.booster(), oracle)
    said = re.findall(r"^\[3\]\t(.*)$", leader.log, re.MULTILINE)[0]
    values = {name: float(value) for name, value in (part.split(":") for part in said.split("\t"))}
    for channel, part in (("train", slice(None)), ("validation", slice(None, None, 7))):
        label, weights, found = rows["y"][part], weight[part], predictions(leader, rows[part])
        for metric, expected in (
            ("auc", roc_auc_score(label, found, sample_weight=weights)),
            ("logloss", log_loss(label, found, sample_weight=weights)),
            ("accuracy", accuracy_score(label, found > 0.5, sample_weight=weights)),
        ):
            assert values[f"{channel}-{metric}"] == pytest.approx(expected, abs=1e-5)


def test_queries_may_be_on_one_of_two_hosts(tmp_path: Path, table: pd.DataFrame) -> None:
    rows = table.sample(frac=1, random_state=1).assign(
        y=lambda frame: (frame["y"] > 0.4).astype(np.float32), query=np.arange(ROWS) // 10
    )
    settings = {
        **SETTINGS,
        "objective": "rank:ndcg",
        "categorical_columns": "word",
        "group_column": "query",
        "eval_metric": "ndcg",
    }
    with hosts_of(
        tmp_path, [{"train": NOTHING}, {"train": named(rows)}], settings, distribution="ShardedByS3Key"
    ) as job:
        leader = assert_trained(job.run())
    scores = predictions(leader, rows).reshape(-1, 10)
    labels = rows["y"].to_numpy().reshape(-1, 10)
    assert labels.any(axis=1).all()
    values = re.findall(r"train-ndcg:([\d.]+)", leader.log)
    assert float(values[-1]) == pytest.approx(ndcg_score(labels, scores), abs=1e-3)
    matrix = xgb.QuantileDMatrix(categorical(rows), rows["y"], qid=rows["query"], enable_categorical=True)
    oracle = xgb.train({"max_depth": 3, "objective": "rank:ndcg"}, matrix, 4)
    assert_same_trees(leader.booster(), oracle)


def test_survival_times_may_be_on_one_of_two_hosts(tmp_path: Path, table: pd.DataFrame) -> None:
    rows = table.assign(low=table["y"] + 2, high=table["y"] + 3)[["low", "high", "word", "x"]]
    settings = {
        **SETTINGS,
        "objective": "survival:aft",
        "categorical_columns": "word",
        "label_lower_column": "low",
        "label_upper_column": "high",
    }
    with hosts_of(
        tmp_path, [{"train": NOTHING}, {"train": named(rows)}], settings, distribution="ShardedByS3Key"
    ) as job:
        leader = assert_trained(job.run())
    matrix = xgb.QuantileDMatrix(categorical(rows), enable_categorical=True)
    matrix.set_float_info("label_lower_bound", rows["low"])
    matrix.set_float_info("label_upper_bound", rows["high"])
    assert_same_trees(leader.booster(), xgb.train({"max_depth": 3, "objective": "survival:aft"}, matrix, 4))
