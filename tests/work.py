"""The work of a job in this process: what a job says and leaves, without the second that its processes take.

What the supervisor does at a job's end happens here too: results get their names, or are removed.
A test of processes, signals, permissions or the environment runs a whole job (`tests.opt_ml.run_train`).
"""

from __future__ import annotations

import io
import os
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.opt_ml import read_outcome

from smxgb.checking import forecast_files, perform_dry_run
from smxgb.job import Sources, load_job
from smxgb.log import log, log_error, warnings_as_lines
from smxgb.supervision.link import Link, diagnose
from smxgb.supervision.publishing import PARTIAL, publish, remove_unfinished
from smxgb.trainers import train

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.opt_ml import Outcome

    from smxgb.errors import JobError

SAGEMAKER = Sources()


@dataclass(frozen=True)
class Checked:
    """How a check ended, with the names that `subprocess` has for it."""

    returncode: int
    stdout: str
    stderr: str


def work(base: Path) -> Outcome:
    """Do the work of the job of a tree, as its one worker, on a machine without a GPU."""
    lines = io.StringIO()
    failure = _failure(lambda: train(load_job(_environ(base)), Link()), lines, lines)
    folders = (base / "model", base / "output" / "data")
    if failure is None:
        publish([path for folder in folders for path in folder.glob(f"{PARTIAL}*")])
        return read_outcome(base, 0, lines.getvalue())
    remove_unfinished(*folders)
    (base / "output" / "failure").write_text(failure.failure_text())
    return read_outcome(base, failure.exit_code, lines.getvalue())


def dry_run(base: Path) -> Checked:
    """Check the job of a tree as `smxgb check` does."""
    return _checked(lambda: perform_dry_run(load_job(_environ(base))))


def forecast(base: Path, listing: Path, hosts: int, sources: Sources = SAGEMAKER) -> Checked:
    """Forecast a job as `smxgb check --listing` does."""

    def act() -> None:
        for line in forecast_files(str(listing), hosts, _environ(base), sources):
            log(line)

    return _checked(act)


def _checked(act: Callable[[], object]) -> Checked:
    out, err = io.StringIO(), io.StringIO()
    failure = _failure(act, out, err)
    return Checked(failure.exit_code if failure else 0, out.getvalue(), err.getvalue())


def _failure(act: Callable[[], object], out: io.StringIO, err: io.StringIO) -> JobError | None:
    """Return the failure with which `act` ends; what it logs, warnings among it, goes to `out` and `err`."""
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings_as_lines()
        try:
            act()
        except Exception as error:  # noqa: BLE001 - as at the end of every process of a job
            failure = diagnose(error)
            for line in failure.lines():
                log_error(line)
            return failure
    return None


def _environ(base: Path) -> dict[str, str]:
    return {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "NVIDIA_VISIBLE_DEVICES": "none"}
