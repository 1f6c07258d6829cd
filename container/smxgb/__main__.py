"""The commands of the container. SageMaker calls `train` and `serve`; `smxgb` has them all."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb import __version__
from smxgb.environment import Paths, process_environ
from smxgb.errors import Mistakes
from smxgb.link import Link, die_of, die_with_parent, failure_of, leave
from smxgb.log import log, log_error, warnings_as_lines
from smxgb.supervisor import supervise
from smxgb.terminal import is_watched, round_bar, write_over_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INTERNAL = ("work", "dask-scheduler", "dask-worker")
"""Commands that nobody but the supervisor gives."""

KEPT_OUT = ("pandas", "sklearn", "polars", "modin", "cudf", "matplotlib", "graphviz")
"""Packages that xgboost imports if they are there. Training needs none of them: without, it starts in half
the time and with a third of the memory."""


def main() -> int:
    """Run the command that the arguments name; return the exit code."""
    arguments = _arguments()
    match arguments.command:
        case "train":
            return train()
        case "check":
            return _check(arguments)
        case "describe":
            return _describe(markdown=arguments.markdown)
        case "work":
            _work(arguments.link, arguments.beat)
        case "dask-scheduler" | "dask-worker":
            _dask(arguments)
    return serve()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="smxgb", description="XGBoost training container for Amazon SageMaker."
    )
    parser.add_argument("--version", action="version", version=f"smxgb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if sys.argv[1:] and sys.argv[1] in INTERNAL:
        _add_internal(commands)
        return parser.parse_args()
    commands.add_parser("train", help="train as SageMaker asks, from /opt/ml or $SAGEMAKER_BASE_DIR")
    check = commands.add_parser("check", help="say what a job would do, and what is wrong with it")
    check.add_argument("--hyperparameters", type=Path, metavar="FILE", help="JSON, instead of the job's")
    check.add_argument("--train", type=Path, metavar="FOLDER", help="instead of the job's channels")
    check.add_argument("--validation", type=Path, metavar="FOLDER", help="with --train")
    check.add_argument(
        "--listing", metavar="FILE", help="plan for files by their sizes and names (-: standard input)"
    )
    check.add_argument("--hosts", type=int, metavar="N", help="on so many hosts, with --listing")
    describe = commands.add_parser(
        "describe",
        help="print settings, content types and metrics as JSON; a job takes at most 40 metric definitions",
    )
    describe.add_argument("--markdown", action="store_true", help="print the README's tables instead")
    commands.add_parser("serve", help="serve a model (comes later)")
    given = sys.argv[1] if sys.argv[1:] else "-"
    if not given.startswith("-") and given not in commands.choices:
        close = get_close_matches(given, commands.choices, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(commands.choices)}."
        parser.error(f"there is no command {given!r}: {hint}")
    return parser.parse_args()


def _add_internal(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands with which processes of a job start each other."""
    for name in INTERNAL:
        command = commands.add_parser(name)
        command.add_argument("--link", type=int, required=True)
        command.add_argument("--beat", type=float)
    scheduler, worker = commands.choices["dask-scheduler"], commands.choices["dask-worker"]
    scheduler.add_argument("--host", required=True)
    scheduler.add_argument("--port", type=int, required=True)
    scheduler.add_argument("--dashboard", action="store_true")
    worker.add_argument("--scheduler", required=True)
    worker.add_argument("--token", required=True)
    worker.add_argument("--index", type=int, required=True)
    worker.add_argument("--gpus")


def train() -> int:
    """Train: start the work in a process of its own, and report however it ends."""
    with round_bar() as on_round:
        return supervise(process_environ(), on_round=on_round)


def serve() -> int:
    """Say that serving comes later."""
    log_error(
        "This image does not serve yet: deploy the model with AWS's XGBoost image, version 3.1 or newer."
    )
    return 1


def _check(arguments: argparse.Namespace) -> int:
    """Rehearse a job up to one batch of each channel, or forecast one; return 0, or 2 for a mistake."""
    warnings_as_lines()
    _keep_out(KEPT_OUT)
    from smxgb.forecast import forecast  # noqa: PLC0415 - after the packages that are kept out
    from smxgb.job import Places, load_job, read_settings  # noqa: PLC0415
    from smxgb.rehearsal import rehearse  # noqa: PLC0415

    folders = {"train": arguments.train, "validation": arguments.validation}
    channels = {name: path for name, path in folders.items() if path}
    places = Places(arguments.hyperparameters, channels or None)
    paths = Paths.from_environ(process_environ())
    try:
        _check_options(arguments, channels)
        if arguments.listing:
            hosts = 1 if arguments.hosts is None else arguments.hosts
            for line in forecast(arguments.listing, hosts, process_environ(), places):
                log(line)
        elif arguments.hyperparameters and not channels and not paths.data.exists():
            read_settings(paths, places)
            log("The settings alone show no mistake. Give --train FOLDER to have the data checked too.")
        else:
            rehearse(load_job(process_environ(), places))
    except Exception as error:  # noqa: BLE001 - whatever it is, it gets reported
        failure = failure_of(error)
        for line in failure.lines():
            log_error(line)
        return failure.exit_code
    return 0


def _check_options(arguments: argparse.Namespace, channels: Mapping[str, Path]) -> None:
    """Raise UserError for options of `check` that don't go together."""
    mistakes = Mistakes()
    if arguments.hosts is not None and not arguments.listing:
        mistakes.add("--hosts goes with --listing: give both, or neither.")
    if arguments.validation and not arguments.train:
        mistakes.add("--validation goes with --train: give both, or neither.")
    for name, path in channels.items():
        if path.is_file():
            mistakes.add(f"--{name} needs a folder, and {path} is a file: give {path.parent}.")
    mistakes.raise_any()


def _describe(*, markdown: bool) -> int:
    from smxgb.hyperparameters.description import describe, settings_table  # noqa: PLC0415 - only needed here

    log(settings_table() if markdown else json.dumps(describe(), indent=2))
    return 0


def _work(fd: int, beat: float | None) -> None:
    """Do the work of a training job in this process."""
    with child(fd, beat) as link:
        from smxgb.job import load_job  # noqa: PLC0415 - after the packages that are kept out
        from smxgb.trainers import train as start_training  # noqa: PLC0415

        start_training(load_job(process_environ()), link)


def _dask(arguments: argparse.Namespace) -> None:
    """Be a process of the Dask mode: the scheduler, or a worker."""
    with child(arguments.link, arguments.beat) as link:
        from smxgb.trainers import dask_cluster  # noqa: PLC0415 - after the packages that are kept out

        if arguments.command == "dask-scheduler":
            dask_cluster.run_scheduler(link, arguments.host, arguments.port, dashboard=arguments.dashboard)
        else:
            dask_cluster.run_worker(
                link, arguments.scheduler, arguments.token, arguments.index, arguments.gpus
            )


@contextmanager
def child(fd: int, beat: float | None) -> Iterator[Link]:
    """Be a child of the supervisor, to which `fd` leads; the process ends with the block.

    `beat` is after how many seconds each the supervisor wants a sign of life, if it does.
    """
    die_with_parent(fd)
    link = Link(fd)
    try:
        link.phase("start")
        warnings_as_lines()
        if is_watched():
            write_over_bar()
        if beat is not None:
            link.beat(beat)
        _keep_out(KEPT_OUT)
        # Several processes share the log: a line goes to it as a whole.
        sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
        yield link
    except BaseException as error:  # noqa: BLE001 - the one boundary: whatever it is, it gets reported
        die_of(error, link)
    leave(0)


def _keep_out(packages: tuple[str, ...]) -> None:
    """Make the import of packages fail, as if they were not installed."""
    sys.modules.update(dict.fromkeys(packages))  # type: ignore[arg-type]
    import pyarrow as pa  # noqa: PLC0415

    # pyarrow looks for pandas at the first conversion and stumbles over the None, once.
    try:
        pa.array([0])
    except AttributeError:
        pa.array([0])


if __name__ == "__main__":
    sys.exit(main())
