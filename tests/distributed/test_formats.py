"""Several hosts with files that tell only together what they hold: libsvm, records, categories."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Source, csv
from tests.recordio import framed, record, tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = {"num_round": 4, "max_depth": 3}


def libsvm(table: pd.DataFrame) -> Source:
    lines = [
        " ".join(
            [f"{label}", *(f"{index}:{value}" for index, value in enumerate(row) if not np.isnan(value))]
        )
        for label, *row in table.itertuples(index=False)
    ]
    return Source({"a.libsvm": "\n".join(lines).encode()}, "libsvm")


def records(table: pd.DataFrame) -> Source:
    written = []
    for label, *row in table.itertuples(index=False):
        keys = [index for index, value in enumerate(row) if not np.isnan(value)]
        written.append(record(tensor([row[key] for key in keys], keys=keys), tensor([label])))
    return Source({"a.rec": framed(written)}, "recordio-protobuf")


@pytest.fixture
def table() -> pd.DataFrame:
    """Return a table whose first half has no value in the first column, and its second none in the last."""
    # Few different values: the sketches of two hosts then merge into that of one.
    values = np.random.default_rng(3).integers(0, 20, (600, 4)).astype(np.float32)
    frame = pd.DataFrame({"y": values[:, 1] - values[:, 2] / 3, **{f"x{i}": values[:, i] for i in range(4)}})
    frame.loc[:299, "x0"] = np.nan
    frame.loc[300:, "x3"] = np.nan
    return frame


@pytest.mark.parametrize("write", [libsvm, records])
def test_hosts_agree_on_width_and_first_index_of_sparse_shards(
    tmp_path: Path, table: pd.DataFrame, write: Callable[[pd.DataFrame], Source]
) -> None:
    shards = [{"train": write(table[:300])}, {"train": write(table[300:])}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [0, 0], "\n".join(outcome.log for outcome in outcomes)
    features = table.drop(columns="y").to_numpy()
    oracle = xgb.train({"max_depth": 3}, xgb.QuantileDMatrix(features, table["y"]), 4)
    booster = outcomes[0].booster()
    assert booster.num_features() == 4
    found = booster.predict(xgb.DMatrix(features))
    np.testing.assert_allclose(found, oracle.inplace_predict(features), rtol=1e-4)


def test_a_host_without_a_sparse_file_joins_all_the_same(tmp_path: Path, table: pd.DataFrame) -> None:
    shards = [{"train": Source({"_SUCCESS": b"x"}, "libsvm")}, {"train": libsvm(table)}]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [0, 0], "\n".join(outcome.log for outcome in outcomes)
    assert outcomes[0].booster().attributes() == {"libsvm_indexing": "0"}


def test_hosts_with_different_categories_train_the_trees_of_one(tmp_path: Path) -> None:
    generator = np.random.default_rng(8)
    word = np.sort(generator.integers(0, 12, 600))  # each host has words that the other has not
    x = generator.integers(0, 30, 600)
    frame = pd.DataFrame({"y": np.sin(word * 7) + x / 30, "word": [f"w{i:02}" for i in word], "x": x})
    shards = [
        {"train": csv(frame[:200], header=True), "validation": csv(frame[::9], header=True)},
        {"train": csv(frame[200:], header=True)},
    ]
    settings = {**SETTINGS, "categorical_columns": "word"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [0, 0], "\n".join(outcome.log for outcome in outcomes)
    features = frame.drop(columns="y").astype({"word": "category"})
    features["x"] = features["x"].astype(np.float32)
    matrix = xgb.QuantileDMatrix(features, frame["y"], enable_categorical=True)
    oracle = xgb.train({"max_depth": 3}, matrix, 4)
    found = outcomes[0].booster().predict(xgb.DMatrix(features, enable_categorical=True))
    np.testing.assert_allclose(found, oracle.predict(matrix), rtol=1e-4)
    error = np.sqrt(np.mean((found[::9] - frame["y"][::9]) ** 2))
    values = re.findall(r"validation-rmse:([\d.]+)", outcomes[0].log)
    assert float(values[-1]) == pytest.approx(error, rel=1e-4)


def test_with_categories_each_host_needs_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [1.0, 0.0] * 9, "word": ["a", "b", "c"] * 6})
    shards = [{"train": csv(frame, header=True)}, {"train": Source({"_SUCCESS": b"x"}, "csv")}]
    settings = {**SETTINGS, "categorical_columns": "word"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [2, 2]
    assert outcomes[0].failure is not None
    assert (
        "channel train has categories and no row on 127.0.0.2: XGBoost then needs rows" in outcomes[0].failure
    )
