"""`docker stop`, as SageMaker ends a job: the model so far is kept, and the next job goes on from it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.image.hosts import hosts, outcomes
from tests.opt_ml import csv

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd
    from tests.opt_ml import Outcome

WAYS: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "1 host": (1, {}),
    "2 hosts": (2, {}),
    "Dask 1x2": (1, {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}),
}
SETTINGS = {
    "objective": "reg:squarederror",
    "num_round": 60,
    "num_parallel_tree": 30,
    "subsample": 0.7,
    "nthread": 1,
}
MOST_SECONDS = 10


def run(base: Path, network: str, table: pd.DataFrame, way: str, stop_at: str | None = None) -> Outcome:
    """Run a job in containers, told to stop when a line begins so; return the outcome of its first host.

    A second run finds the checkpoints of the first one on each host, as SageMaker hands them over.
    """
    count, mode = WAYS[way]
    shards = [{"train": csv(part)} for part in (table[:1500], table[1500:])[:count]]
    point = {"LocalPath": "/opt/ml/checkpoints"}
    with hosts(base, network, shards, {**SETTINGS, **mode}, checkpointconfig=point) as job:
        if stop_at is not None:
            job[0].wait_for(stop_at, seconds=60)
            # One host is told, as when one Spot instance is taken away.
            assert job[-1].stop(seconds=60) < MOST_SECONDS
        ended = outcomes(job)
    for each in job[1:]:
        shutil.copytree(job[0].base / "checkpoints", each.base / "checkpoints", dirs_exist_ok=True)
    assert [each.code for each in ended] == [0] * count, ended[0].log
    return ended[0]


def rounds(log: str) -> list[str]:
    return re.findall(r"^\[\d+\]\t.*$", log, re.MULTILINE)


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way == "2 hosts" else pytest.mark.soak) for way in WAYS]
)
def test_a_stopped_job_leaves_its_model_and_goes_on_as_if_it_had_not_been(
    tmp_path: Path, network: str, table: pd.DataFrame, way: str
) -> None:
    whole = run(tmp_path / "whole", network, table, way)
    stopped = run(tmp_path / "job", network, table, way, stop_at="[7]\t")
    after = json.loads(stopped.output_data["metrics.json"])["stopped_after"]
    assert 8 <= after < SETTINGS["num_round"]
    assert len(rounds(stopped.log)) == after
    assert stopped.booster().num_boosted_rounds() == after
    again = run(tmp_path / "job", network, table, way)
    assert rounds(stopped.log) + rounds(again.log) == rounds(whole.log)
    assert again.model == whole.model is not None
