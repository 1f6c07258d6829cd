"""Several hosts with files that tell only together what they hold: libsvm, records, categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Source, libsvm
from tests.recordio import framed, record, tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = {"num_round": 4, "max_depth": 3}


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
    assert outcomes[0].booster().attr("libsvm_indexing") == "0"
