from __future__ import annotations

import errno
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
import xgboost as xgb

from smxgb.training.boosting import Recipe, Run
from smxgb.training.checkpoint_file import decode
from smxgb.training.checkpoints import CheckpointFolder, CheckpointWriter

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event
    from pathlib import Path

FACTS = {"eta": "0.3"}


def booster() -> xgb.Booster:
    """Return a model of one round."""
    return xgb.train({"nthread": 1}, xgb.DMatrix([[0.0], [1.0]], [0, 1]), 1)


class Clock:
    """Seconds that a test sets, and what each look at them takes."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("smxgb.training.checkpoints.time.monotonic", lambda: clock.now)
    return clock


class SlowFolder(CheckpointFolder):
    """A folder in which each checkpoint takes some seconds of the clock; it notes the rounds instead."""

    def __init__(self, path: Path, clock: Clock, seconds: float) -> None:
        super().__init__(path, FACTS)
        self.clock = clock
        self.seconds = seconds
        self.rounds: list[int] = []

    def write(self, data: bytes, rounds: int, keep: int) -> None:  # noqa: ARG002 - it keeps all
        self.clock.now += self.seconds
        self.rounds.append(rounds)


def rounds_written(folder: SlowFolder, total: int, seconds_a_round: float) -> list[int]:
    writer = CheckpointWriter(folder, FACTS, 1, None, 5)
    run = Run(Recipe({}, total), booster())
    while not run.is_over:
        folder.clock.now += seconds_a_round
        run.take({})
        writer.after_round(run, is_last=run.is_over)
    return folder.rounds


def test_the_first_round_is_written_and_then_as_many_as_cost_one_percent(
    tmp_path: Path, clock: Clock
) -> None:
    # Each takes 0.05 s, so 10 s of training pay for one; the last is written in any case.
    assert rounds_written(SlowFolder(tmp_path, clock, 0.05), 45, 1.0) == [1, 20, 30, 40, 45]


def test_a_checkpoint_that_takes_long_is_written_every_five_minutes_all_the_same(
    tmp_path: Path, clock: Clock
) -> None:
    assert rounds_written(SlowFolder(tmp_path, clock, 60.0), 12, 100.0) == [1, 4, 7, 10, 12]


def read_in_a_loop(folder: Path, ready: Event, done: Event, found: Path) -> None:
    """Read every file under a final name until `done`; note how many were read, or what was wrong."""
    count = 0
    while not done.is_set():
        for path in folder.iterdir():
            if not path.name.startswith("."):
                try:
                    decode(path.read_bytes())
                    count += 1
                except FileNotFoundError:
                    pass  # a newer one has taken its place
                except ValueError as error:
                    found.write_text(f"{path}: {error}")
                    return
        ready.set()
    found.write_text(str(count))


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.soak)])
def test_no_reader_ever_finds_half_a_file_under_a_final_name(tmp_path: Path, count: int) -> None:
    folder = CheckpointFolder(tmp_path / "points", FACTS)
    folder.prepare()
    context = get_context("spawn")
    ready, done = context.Event(), context.Event()
    reader = context.Process(target=read_in_a_loop, args=(folder.path, ready, done, tmp_path / "found"))
    reader.start()
    assert ready.wait(60)
    writer = CheckpointWriter(folder, FACTS, 1, 1, 5)
    run = Run(Recipe({}, count), booster())
    while not run.is_over:
        run.take({("train", "rmse"): 0.5})
        writer.after_round(run, is_last=run.is_over)
    done.set()
    reader.join(60)
    assert int((tmp_path / "found").read_text()) > 0
    assert len(list(folder.path.iterdir())) == 5


def test_a_disk_that_fills_up_and_is_emptied_is_said_once_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path, FACTS)
    writer = CheckpointWriter(folder, FACTS, 1, 1, 5)
    run = Run(Recipe({}, 9), booster())
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(_: int) -> None:
        raise full

    for is_full in (False, True, True, False, True):
        with monkeypatch.context() as patched:
            if is_full:
                patched.setattr("smxgb.training.checkpoints.os.fsync", fail)
            run.take({})
            writer.after_round(run, is_last=False)
    assert capsys.readouterr().out.count("No space left on device") == 2
    assert writer.cost.written == 2
    assert len(list(tmp_path.iterdir())) == 2
