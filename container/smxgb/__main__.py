"""The commands of the container. SageMaker calls `train` and `serve`; `smxgb` has them all."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb import __version__, processes, serving
from smxgb.environment import Paths, process_environ
from smxgb.errors import Mistakes
from smxgb.log import log, log_error, open_streams, warnings_as_lines
from smxgb.program import PROGRAM
from smxgb.script_mode.script import has_script
from smxgb.serving import WORKER
from smxgb.supervision import supervise
from smxgb.supervision.link import diagnose
from smxgb.terminal import round_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def main() -> int:
    """Run the command that the arguments name; return the exit code."""
    open_streams()
    if sys.argv[1:] and sys.argv[1] in processes.NAMES:
        processes.run(sys.argv[1:])
    if sys.argv[1:2] == [WORKER]:
        return processes.answer_requests(sys.argv[2:])
    arguments = _arguments()
    match arguments.command:
        case "train":
            return train()
        case "check":
            return _check(arguments)
        case "describe":
            return _describe(markdown=arguments.markdown)
        case "predict":
            return _predict(arguments)
    return serve()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="smxgb", description="XGBoost training container for Amazon SageMaker."
    )
    parser.add_argument("--version", action="version", version=f"smxgb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
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
    commands.add_parser("serve", help="serve the model in /opt/ml/model, as SageMaker asks")
    predict = commands.add_parser(
        "predict", help="write a model's predictions for files, a line for each row"
    )
    predict.add_argument("model", type=Path, metavar="MODEL", help="the model's file, or a folder of models")
    predict.add_argument("files", type=Path, metavar="FILE", nargs="+", help="CSV, Parquet, libsvm, ...")
    predict.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")
    predict.add_argument("--label-first", action="store_true", help="pass over the first column of each row")
    given = sys.argv[1] if sys.argv[1:] else "-"
    if not given.startswith("-") and given not in commands.choices:
        close = get_close_matches(given, commands.choices, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(commands.choices)}."
        parser.error(f"there is no command {given!r}: {hint}")
    return parser.parse_args()


def train() -> int:
    """Train, or run the user's script: in a process of its own. Report however it ends."""
    open_streams()
    environ = process_environ()
    if has_script(environ):
        return supervise(environ, (*PROGRAM, "script"), is_script=True)
    with round_bar() as on_round:
        return supervise(environ, on_round=on_round)


def serve() -> int:
    """Serve the model in /opt/ml/model until SIGTERM."""
    return serving.serve(process_environ())


def _check(arguments: argparse.Namespace) -> int:
    """Dry-run a job up to one batch of each channel, or forecast one; return the exit code."""
    warnings_as_lines()
    processes.keep_out_unneeded()
    from smxgb.checking import forecast_files, perform_dry_run  # noqa: PLC0415 - after what is kept out
    from smxgb.job import Sources, load_job, read_settings  # noqa: PLC0415

    folders = {"train": arguments.train, "validation": arguments.validation}
    channels = {name: path for name, path in folders.items() if path}
    sources = Sources(arguments.hyperparameters, channels or None)
    paths = Paths.from_environ(process_environ())
    with _reported() as end:
        _check_options(arguments, channels)
        if arguments.listing:
            hosts = 1 if arguments.hosts is None else arguments.hosts
            for line in forecast_files(arguments.listing, hosts, process_environ(), sources):
                log(line)
        elif arguments.hyperparameters and not channels and not paths.data.exists():
            read_settings(paths, sources)
            log("The settings alone show no mistake. Give --train FOLDER to have the data checked too.")
        else:
            perform_dry_run(load_job(process_environ(), sources))
    return end.code


def _predict(arguments: argparse.Namespace) -> int:
    """Predict the rows of files; return the exit code."""
    warnings_as_lines()
    processes.keep_out_unneeded()
    from smxgb.serving.files import Prediction, predict_files  # noqa: PLC0415 - after what is kept out

    with _reported() as end:
        predict_files(Prediction(arguments.model, arguments.files, arguments.output, arguments.label_first))
    return end.code


@dataclass
class _End:
    """How a command ends: its exit code."""

    code: int = 0


@contextmanager
def _reported() -> Iterator[_End]:
    """Write every failure inside to the log, and put its exit code into the end that is yielded."""
    end = _End()
    try:
        yield end
    except Exception as error:  # noqa: BLE001 - every failure is reported
        failure = diagnose(error)
        for line in failure.lines():
            log_error(line)
        end.code = failure.exit_code


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
    from smxgb.job import CONTENT_TYPES  # noqa: PLC0415 - only needed here
    from smxgb.settings import describe, settings_table  # noqa: PLC0415

    text = settings_table() if markdown else json.dumps(describe(CONTENT_TYPES), indent=2)
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
