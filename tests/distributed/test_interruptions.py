"""Jobs that are killed or stopped at some round, and run again: each ends as one that nobody interrupted."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import pytest
from tests.distributed.hosts import Hosts, hosts_of
from tests.distributed.places import little_memory
from tests.distributed.table import TABLE, Line
from tests.opt_ml import parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.opt_ml import Outcome

WAYS: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "1 host": (1, {}),
    "2 hosts": (2, {}),
    "Dask 1x2": (1, {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}),
}
"""How many hosts a job has, and the settings that choose its mode."""

KINDS: Mapping[str, Mapping[str, object]] = {
    "subsample": {"subsample": 0.5},
    "colsample": {"colsample_bytree": 0.5, "colsample_bynode": 0.7},
    "dart": {"booster": "dart", "rate_drop": 0.2, "early_stopping_rounds": 50},
    "early stopping": {"early_stopping_rounds": 6, "eta": 0.9, "subsample": 0.8},
    "ranking": {"objective": "rank:ndcg", "group_column": "query", "subsample": 0.8},
}

VICTIMS = ("work", "supervisor", "everything")
ROUNDS = 25

CI = {("1 host", "subsample", 0), ("2 hosts", "early stopping", 1), ("Dask 1x2", "dart", 2)}
"""The rows of the table that each run of the suite has time for."""


def rows(count: int = 4000, seed: int = 1) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(generator.normal(size=(count, 8)).astype("float32"), columns=list("abcdefgh"))
    label = (table.a + table.b * table.c + generator.normal(size=count) > 0).astype("float32")
    table.insert(0, "label", label)
    table.insert(1, "query", np.arange(count) // 40)
    return table


@dataclass(frozen=True)
class Case:
    """A job, and where its runs and checkpoints are."""

    base: Path
    way: str
    settings: Mapping[str, object]

    def job(
        self, name: str, folder: str = "points", last: Sequence[str] = ()
    ) -> AbstractContextManager[Hosts]:
        """Return a run of the job, whose hosts have their checkpoints in `folder`.

        The command `last` goes before that of the last host.
        """
        count, mode = WAYS.get(self.way, (3, {}))
        table = rows()
        if "group_column" not in self.settings:
            table = table.drop(columns="query")
        parts = [table[:1600], table[1600:3200], table[3200:]]
        again = parts[2].assign(query=parts[2]["query"] + 1000) if "query" in table else parts[2]
        channels = {"train": parquet(*parts[:2]), "validation": parquet(parts[2], again)}
        common = {"num_round": ROUNDS, "label_column": "label", "seed": 7, "num_parallel_tree": 8}
        return hosts_of(
            self.base / name,
            [channels] * count,
            {"objective": "binary:logistic", **common, **mode, **self.settings},
            commands=[(), (), (), last][-count:],
            checkpoints=self.base / folder,
        )

    def whole(self) -> Outcome:
        """Run the job in one go."""
        with self.job("whole", "others") as job:
            return ended(job.run(120))


def ended(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of the first host of a job that succeeded."""
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), outcomes[0].log
    return outcomes[0]


def lines(log: str) -> list[str]:
    """Return the evaluation lines, each round once: a round may be trained again after a kill."""
    return list(dict.fromkeys(re.findall(r"^\[\d+\]\t.*$", log, re.MULTILINE)))


def assert_same(outcome: Outcome, log: str, whole: Outcome) -> None:
    assert lines(log) == lines(whole.log)
    assert outcome.model == whole.model is not None
    reports = [json.loads(one.output_data["metrics.json"]) for one in (outcome, whole)]
    for key in ("history", "rounds", "best_round", "best_score", "stopped_after"):
        assert reports[0][key] == reports[1][key]


def interruptions() -> list[object]:
    every = [(way, kind, number) for way in WAYS for kind in KINDS for number in range(20)]
    return [pytest.param(*row, marks=[] if row in CI else pytest.mark.soak) for row in every]


@pytest.mark.parametrize(("way", "kind", "number"), interruptions())
def test_a_job_that_is_killed_at_any_round_and_run_again_ends_as_if_it_had_not_been(
    tmp_path: Path, way: str, kind: str, number: int
) -> None:
    chance = random.Random(f"{way} {kind} {number}")  # noqa: S311 - it chooses a round
    interval = chance.choice([{}, {"checkpoint_interval": 1}, {"checkpoint_interval": 3}])
    case = Case(tmp_path, way, {**KINDS[kind], **interval})
    whole = case.whole()
    # The last rounds are left to the last run.
    total = len(lines(whole.log)) - 3
    log = ""
    for attempt in range(2):
        if len(lines(log)) >= total:
            break
        with case.job(f"killed {attempt}") as job:
            job.start()
            job[0].wait_for(f"[{chance.randrange(len(lines(log)), total)}]\t")
            victim, host = VICTIMS[(number + attempt) % 3], chance.choice(list(job))
            if victim == "work":
                host.kill_work()
            else:
                for each in job if victim == "everything" else [host]:
                    each.kill()
            job.wait(60)
            log += job[0].log
    with case.job("last") as job:
        last = ended(job.run(120))
    assert_same(last, log + last.log, whole)


type Stage = Literal["load", "matrix", "train"]
STAGES: Mapping[Stage, str] = {"load": "Versions: ", "matrix": "Matrix: ", "train": "[7]\t"}
"""What the first host's log says when a stage begins."""

DEATHS = ("killed", "frozen", "out of memory")

DEATHS_IN_CI = {
    ("1 host", "killed", "train"),
    ("2 hosts", "killed", "train"),
    ("2 hosts", "frozen", "load"),
    ("Dask 1x2", "killed", "train"),
}


def deaths() -> list[object]:
    ways = (*WAYS, "3 hosts")
    every = [(way, death, stage) for way in ways for death in DEATHS for stage in STAGES]
    # Before the memory plan is made there is no next one.
    every = [row for row in every if row[1:] != ("out of memory", "load")]
    return [pytest.param(*row, marks=[] if row in DEATHS_IN_CI else pytest.mark.soak) for row in every]


@pytest.mark.parametrize(("way", "death", "stage"), deaths())
def test_a_job_of_which_a_process_dies_starts_it_again_and_ends_as_if_it_had_not_died(
    tmp_path: Path, way: str, death: str, stage: Stage
) -> None:
    if death == "out of memory" and os.geteuid():
        pytest.skip("limiting memory needs root")
    case = Case(tmp_path, way, {"subsample": 0.7, "early_stopping_rounds": 50, "silence_timeout": 4})
    whole = case.whole()
    with ExitStack() as stack:
        memory = stack.enter_context(little_memory()) if death == "out of memory" else None
        job = stack.enter_context(case.job("died", last=memory.command if memory else ()))
        job.start()
        job[0].wait_for(STAGES[stage])
        begin = time.monotonic()
        victim = job.hosts[-1].processes()[-1]  # in Dask mode the last process is a worker
        if memory:
            os.kill(victim, signal.SIGSTOP)  # the job is short, and to take memory lasts
            memory.exhaust(victim)
        else:
            os.kill(victim, signal.SIGKILL if death == "killed" else signal.SIGSTOP)
        again = ended(job.wait(120))
    TABLE.append(Line(death, way, stage, [0], time.monotonic() - begin, []))
    assert "The work is started again (restart 1)" in again.log
    assert_same(again, again.log, whole)


@pytest.mark.parametrize("way", WAYS)
def test_a_job_of_which_a_process_dies_twice_ends_with_both_causes(tmp_path: Path, way: str) -> None:
    with Case(tmp_path, way, {"num_round": 100_000}).job("died") as job:
        job.start()
        for text in ("[5]\t", "goes on from its last checkpoint"):
            job[0].wait_for(text)
            job[0].wait_until_grown("\t")
            os.kill(job.hosts[-1].processes()[-1], signal.SIGKILL)
        outcomes = job.wait(60)
    assert [outcome.code for outcome in outcomes] == [137] * len(outcomes)
    for outcome in outcomes:
        assert "was killed from outside" in str(outcome.failure)
        assert "The work had been started again once before, after this: " in str(outcome.failure)
    assert not any(outcome.models for outcome in outcomes)


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_leaves_a_model_and_a_job_that_goes_on_as_if_it_had_not_been(tmp_path: Path, way: str) -> None:
    case = Case(tmp_path, way, {"early_stopping_rounds": 100, "subsample": 0.7, "num_round": 60})
    whole = case.whole()
    with case.job("stopped") as job:
        job.start()
        job[0].wait_for("[7]\t")
        begin = time.monotonic()
        # One host is told, as when one Spot instance is taken away.
        process = job.hosts[-1].process
        assert process is not None
        process.terminate()
        stopped = ended(job.wait(10))
    assert time.monotonic() - begin < 10
    report = json.loads(stopped.output_data["metrics.json"])
    assert 8 <= report["stopped_after"] < 60
    assert len(lines(stopped.log)) == report["stopped_after"] == report["rounds"]
    assert stopped.booster().num_boosted_rounds() == report["best_round"] + 1
    with case.job("again") as job:
        again = ended(job.run(120))
    assert "Stopped after" not in again.log
    assert_same(again, stopped.log + again.log, whole)


@pytest.mark.parametrize("way", ["1 host", "2 hosts"])
def test_a_stop_of_a_job_that_is_to_leave_no_model_keeps_its_checkpoint(tmp_path: Path, way: str) -> None:
    case = Case(tmp_path, way, {"save_model_on_termination": "false", "num_round": 200})
    with case.job("stopped") as job:
        job.start()
        job[0].wait_for("[3]\t")
        for host in job:
            assert host.process is not None
            host.process.terminate()
        outcomes = job.wait(10)
    assert [outcome.code for outcome in outcomes] == [143] * len(outcomes)
    assert not any(outcome.models for outcome in outcomes)
    rounds = len(lines(outcomes[0].log))
    text = (
        f"the job was stopped after {rounds} rounds, no model was written (save_model_on_termination=false)"
    )
    assert all(text in str(outcome.failure) for outcome in outcomes)
    assert any(f"-{rounds:08}." in path.name for path in (tmp_path / "points" / "127.0.0.1").iterdir())


def test_another_number_of_workers_goes_on_and_says_so(tmp_path: Path) -> None:
    settings = {"num_round": 6}
    with Case(tmp_path, "1 host", {**settings, "num_round": 3}).job("first") as job:
        ended(job.run())
    with Case(tmp_path, "2 hosts", settings).job("second") as job:
        second = ended(job.run())
    assert "The checkpoint is of a job with 1 worker, this one has 2" in second.log
    assert [line[:3] for line in lines(second.log)] == ["[3]", "[4]", "[5]"]
