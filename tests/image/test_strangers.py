"""A stranger on the network of a job's hosts costs no model, and learns and runs nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, get_args

import pytest
from tests.image.containers import docker, image, learned
from tests.image.hosts import hosts, outcomes
from tests.image.strangers import CONTROL, SCHEDULER, TABLE, Kind, reached, stranger
from tests.opt_ml import csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

NAMES = ("algo-1", "algo-2")
SETTINGS = {"objective": "reg:squarederror", "num_round": 1500, "max_depth": 4, "nthread": 1}
MODES: dict[str, dict[str, object]] = {
    "collective": {},
    "dask": {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2},
}

CLIENT = """
import sys
from smxgb.supervision.messages import Rendezvous
from smxgb.trainers.credentials import make_credentials, security_of
from distributed import Client
address, secure = sys.argv[1:]
security = security_of(Rendezvous(make_credentials(), ())) if secure == "tls" else None
try:
    client = Client(f"{secure}://{address}", security=security, timeout=5)
    print("ran:", client.run(lambda: open("/opt/ml/input/config/hyperparameters.json").read()))
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        pytest.param(
            kind,
            mode,
            marks=[] if (kind, mode) in {("stays", "collective"), ("babbles", "dask")} else pytest.mark.soak,
        )
        for kind in get_args(Kind.__value__)
        for mode in MODES
    ],
)
def test_a_stranger_at_every_port_in_every_phase_costs_no_model(
    tmp_path: Path, network: str, table: pd.DataFrame, kind: Kind, mode: str
) -> None:
    shards = [{"train": csv(table[:1500])}, {"train": csv(table[1500:])}]
    begin = time.monotonic()
    with stranger(network, kind, NAMES, tmp_path) as other:
        with hosts(tmp_path, network, shards, {**SETTINGS, **MODES[mode]}) as containers:
            ended = outcomes(containers)
        counts = reached(other)
    codes, seconds = [each.code for each in ended], time.monotonic() - begin
    TABLE.append(f"{kind:8} {mode:11} exit {codes} after {seconds:.0f} s, connections by port: {counts}")
    assert counts[CONTROL] > 0
    if codes == [3, 3]:  # it has hit, in the moment when the workers met, a port that XGBoost opens to all
        assert "no host of this job, connected with port" in str(ended[0].failure), ended[0].log
        return
    assert codes == [0, 0], "\n\n".join(each.log for each in ended)
    assert list(ended[0].models) == ["xgboost-model"]
    assert learned(ended[0], table)


def test_no_client_of_dask_without_the_jobs_key_runs_anything(
    tmp_path: Path, network: str, table: pd.DataFrame
) -> None:
    """Neither from outside, where the kernel drops it, nor from a host of the job, where it lacks the key."""
    shards = [{"train": csv(table[:1500])}, {"train": csv(table[1500:])}]
    settings = {**SETTINGS, **MODES["dask"], "num_round": 1_000_000}
    with hosts(tmp_path, network, shards, settings) as (leader, other):
        leader.wait_for("[5]\t", seconds=180)
        for secure in ("tcp", "tls"):
            client = ("python", "-c", CLIENT, f"algo-1:{SCHEDULER}", secure)
            inside = docker("exec", other.identifier, *client).stdout
            outside = docker("run", "--rm", "--network", network, image("cpu"), *client).stdout
            for said in (inside, outside):
                assert said.splitlines()[-1].startswith("refused: "), said
                assert "ran: " not in said
        assert docker("inspect", "--format", "{{.State.Running}}", leader.identifier).stdout.strip() == "true"


def test_hosts_with_different_hyperparameters_are_told_at_once(
    tmp_path: Path, network: str, table: pd.DataFrame
) -> None:
    shards = [{"train": csv(table[:1500])}, {"train": csv(table[1500:])}]
    with hosts(tmp_path, network, shards, SETTINGS, of_last={"eta": "0.1"}) as containers:
        ended = outcomes(containers)
    for each in ended:
        assert each.code == 2, each.log
        assert str(each.failure).startswith("UserError: host algo-2 differs from host algo-1 in eta: ")
