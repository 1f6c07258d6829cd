"""The processes that do the work of a job. Only the supervisor starts them, never a user."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smxgb.environment import process_environ
from smxgb.log import log_error, warnings_as_lines
from smxgb.supervision.link import Link, diagnose, die_of, die_with_parent, leave
from smxgb.supervision.messages import FIRST_PHASE, PhaseBegins
from smxgb.terminal import is_watched, write_over_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAMES = ("work", "script", "dask-scheduler", "dask-worker")

KEPT_OUT = ("pandas", "sklearn", "polars", "modin", "cudf", "matplotlib", "graphviz")
"""Packages that xgboost imports if they are there. Training needs none of them: without them it starts in
half the time and with a third of the memory."""


def run(argv: Sequence[str]) -> None:
    """Run as the process that the command line names. The process ends with this call."""
    arguments = _parsed(argv)
    with child(arguments.link, arguments.beat) as link:
        if arguments.name != "script":
            keep_out_unneeded()
        match arguments.name:
            case "work":
                _work(link)
            case "script":
                _script(link, arguments.command)
            case "dask-scheduler":
                from smxgb.trainers import dask_cluster  # noqa: PLC0415 - after the packages that are kept out

                dask_cluster.run_scheduler(link, arguments.port, dashboard=arguments.dashboard)
            case "dask-worker":
                from smxgb.trainers import dask_cluster  # noqa: PLC0415 - after the packages that are kept out

                dask_cluster.run_worker(link, arguments.index, arguments.gpus)


def answer_requests(argv: Sequence[str]) -> int:
    """Run as a worker of the server, on the socket that the command line names; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listener", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    arguments = parser.parse_args(argv)
    die_with_parent(arguments.life)
    warnings_as_lines()
    keep_out_unneeded()
    from smxgb.serving.worker import run_worker  # noqa: PLC0415 - after the packages that are kept out

    try:
        run_worker(arguments.listener, process_environ())
    except Exception as error:  # noqa: BLE001 - every exception is reported
        failure = diagnose(error)
        log_error(str(failure))
        return failure.exit_code
    return 0


def keep_out_unneeded() -> None:
    """Make the import of the packages in `KEPT_OUT` fail, as if they were not installed."""
    sys.modules.update(dict.fromkeys(KEPT_OUT))  # type: ignore[arg-type]
    import pyarrow as pa  # noqa: PLC0415

    # At its first conversion, and only then, pyarrow looks for pandas and raises because of the None.
    try:
        pa.array([0])
    except AttributeError:
        pa.array([0])


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    names = parser.add_subparsers(dest="name", required=True)
    for name in NAMES:
        process = names.add_parser(name)
        process.add_argument("--link", type=int, required=True)
        process.add_argument("--beat", type=float)
    names.choices["script"].add_argument("--command", type=json.loads)
    scheduler, worker = names.choices["dask-scheduler"], names.choices["dask-worker"]
    scheduler.add_argument("--port", type=int, required=True)
    scheduler.add_argument("--dashboard", action="store_true")
    worker.add_argument("--index", type=int, required=True)
    worker.add_argument("--gpus")
    return parser.parse_args(argv)


def _work(link: Link) -> None:
    """Train, in this process or in others that it has the supervisor start."""
    from smxgb.job import load_job  # noqa: PLC0415 - after the packages that are kept out
    from smxgb.trainers import train  # noqa: PLC0415

    train(load_job(process_environ()), link)


def _script(link: Link, command: Sequence[str] | None) -> None:
    """Run the script of the job's hyperparameters, or the command that is its entry point."""
    from smxgb.script_mode.work import run_command, run_script  # noqa: PLC0415 - only needed here

    environ = process_environ()
    if command is None:
        run_script(environ, link)
    else:
        run_command(command, environ, link)


@contextmanager
def child(fd: int, beat: float | None) -> Iterator[Link]:
    """Connect this process with its supervisor, through `fd`, while the block runs. The process ends with it.

    It gives a sign of life every `beat` seconds, or none if that is None.
    """
    die_with_parent(fd)
    link = Link(fd)
    try:
        link.send(PhaseBegins(FIRST_PHASE))
        warnings_as_lines()
        if is_watched():
            write_over_bar()
        if beat is not None:
            link.beat(beat)
        # Several processes write to the log: each line must be one write.
        sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
        yield link
    except BaseException as error:  # noqa: BLE001 - every exception is reported
        die_of(error, link)
    leave(0)
