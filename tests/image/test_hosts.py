"""Jobs on several hosts, each a container: shards, late names, and hosts that are lost."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.image.containers import Container, docker, learned
from tests.image.hosts import hosts, outcomes
from tests.image.local_mode import Sdk, run_with
from tests.opt_ml import Source, csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SETTINGS = {
    "objective": "binary:logistic",
    "num_round": 10,
    "max_depth": 4,
    "eval_metric": "auc",
    "nthread": 1,
}


@pytest.fixture(scope="module")
def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a label of 0 or 1, sorted by it."""
    label = (table["y"] > table["y"].quantile(0.7)).astype("float32")
    return table.assign(y=label).sort_values("y")


def shards(table: pd.DataFrame, *sizes: int) -> list[dict[str, Source]]:
    ends = np.cumsum(sizes)
    return [{"train": csv(table[end - size : end])} for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.parametrize("sizes", [(1500, 500), (700, 0, 1300)])
def test_hosts_with_shards_sorted_by_label_train_one_model(
    tmp_path: Path, network: str, labelled: pd.DataFrame, sizes: tuple[int, ...]
) -> None:
    with hosts(tmp_path, network, shards(labelled, *sizes), SETTINGS) as containers:
        leader, *others = outcomes(containers)
    assert [leader.code, *(other.code for other in others)] == [0] * len(sizes), leader.log
    assert list(leader.models) == ["xgboost-model"]
    assert not any(other.models for other in others)
    listed = ", ".join(f"algo-{number} {size:,}" for number, size in enumerate(sizes, start=1))
    assert f"Rows of train: {listed}; together 2,000." in leader.log
    assert not any("\ttrain-auc:" in other.log for other in others)
    logged = float(re.findall(r"^\[9\]\ttrain-auc:([\d.]+)", leader.log, re.MULTILINE)[0])
    # The histograms of scores cost at most 1e-6.
    expected = roc_auc_score(labelled["y"], leader.predict(labelled.drop(columns="y")))
    assert logged == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("last", [0, 1])
def test_a_host_whose_name_resolves_10_seconds_late_is_waited_for(
    tmp_path: Path, network: str, labelled: pd.DataFrame, last: int
) -> None:
    name = f"algo-{last + 1}"

    def without_the_name(others: list[Container]) -> None:
        time.sleep(10)
        # Docker knows a name from the start of its container on.
        look_up = f"import socket; socket.gethostbyname({name!r})"
        assert "gaierror" in docker("exec", others[0].identifier, "python", "-c", look_up).stdout

    with hosts(
        tmp_path,
        network,
        shards(labelled, 1500, 500),
        SETTINGS,
        last=last,
        before_last=without_the_name,
    ) as containers:
        leader, other = outcomes(containers)
    assert [leader.code, other.code] == [0, 0], leader.log
    assert "Rows of train: algo-1 1,500, algo-2 500; together 2,000." in leader.log
    assert list(leader.models) == ["xgboost-model"]


def test_a_host_that_is_killed_ends_the_job_on_all_hosts(
    tmp_path: Path, network: str, labelled: pd.DataFrame
) -> None:
    settings = {**SETTINGS, "num_round": 1_000_000}
    with hosts(tmp_path, network, shards(labelled, 1500, 500), settings) as (leader, other):
        leader.wait_for("[5]\t")
        docker("kill", other.identifier)
        ended = leader.outcome(seconds=20)
    assert ended.code == 3
    assert str(ended.failure).startswith("PlatformError: host algo-2 was lost")
    assert not ended.models


@pytest.mark.parametrize(("victim", "named"), [(0, "algo-1"), (1, "algo-2")])
def test_a_host_that_is_paused_or_cut_off_is_missed(
    tmp_path: Path, network: str, labelled: pd.DataFrame, victim: int, named: str
) -> None:
    settings = {**SETTINGS, "num_round": 1_000_000, "silence_timeout": 3}
    with hosts(tmp_path, network, shards(labelled, 1500, 500), settings) as containers:
        containers[0].wait_for("[5]\t")
        docker("network", "disconnect", "--force", network, containers[victim].identifier)
        begin = time.monotonic()
        ended = outcomes(containers)
    assert time.monotonic() - begin < 3 + 5 + 5
    assert [outcome.code for outcome in ended] == [3, 3]
    assert all(named in str(outcome.failure).splitlines()[0] for outcome in ended), ended


@pytest.mark.parametrize("sdk", ["v2", "v3"])
def test_the_sdk_trains_on_two_hosts(sdk: Sdk, tmp_path: Path, table: pd.DataFrame) -> None:
    settings = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4, "nthread": 1}
    halves = Source(
        {"a.csv": csv(table[:1000]).files["data.csv"], "b.csv": csv(table[1000:]).files["data.csv"]},
        "text/csv",
    )
    ran = run_with(sdk, tmp_path, settings, {"train": halves}, hosts=2)
    assert ran.code == 0, ran.log
    assert list(ran.archives["model.tar.gz"]) == ["xgboost-model"]
    assert learned(ran.outcome(), table)
    assert re.search(r"Rows of train: \S+ 1,000, \S+ 1,000; together 2,000\.", ran.log), ran.log
    assert len(re.findall(r"\[19\]\ttrain-rmse:", ran.log)) == 1
