"""The parent process: starts the work as a child, watches it, and turns its end into what SageMaker reads.

It imports only the standard library, so it starts fast, and no fault of a native library can crash it.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from smxgb.environment import ROOT, Paths, child_environ, read_hosts, read_json, state_environ
from smxgb.errors import UserError
from smxgb.limits import Limits
from smxgb.log import log_error
from smxgb.machine import oom_kills
from smxgb.program import PROGRAM, Program
from smxgb.scratch import state_folder
from smxgb.supervision.child import STOPS, Child
from smxgb.supervision.control import Alone, join_hosts
from smxgb.supervision.endings import SCRIPT, WORK, out_of_memory, unreported, unstartable
from smxgb.supervision.publishing import create, finished, hand_over, remove_unfinished, unfinished
from smxgb.supervision.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from smxgb.errors import JobError
    from smxgb.supervision.control import Control
    from smxgb.supervision.messages import OnRound

COMMAND = (*PROGRAM, "work")


def supervise(
    environ: Mapping[str, str],
    command: Sequence[str] = COMMAND,
    root: Path = ROOT,
    on_round: OnRound | None = None,
    *,
    is_script: bool = False,
) -> int:
    """Do the whole job in a child process; return its exit code. A failed job leaves the failure file.

    `is_script` says that the child runs a user's script.

    Call it in the main thread of a process of its own. It handles SIGCHLD and all `STOPS`, and reaps
    every child process that ends: as process 1 of a container it inherits orphans.
    """
    paths = Paths.from_environ(environ)
    with suppress(OSError):
        paths.failure.unlink()  # an earlier job's
    earlier = finished(paths.model)
    with _signals() as wakeup:
        control, limits = _join_hosts(environ, paths, Limits.of_script if is_script else Limits.read)
        with state_folder(limits.max_restarts) as state:
            of_work = {**environ, **state_environ(state)}
            work = Program(SCRIPT if is_script else WORK, command, {}, control.silence)
            error = _run(work, of_work, root, limits, wakeup=wakeup, control=control, on_round=on_round)
        if error:
            remove_unfinished(paths.model, paths.output_data)
            _report(error, paths.failure)
            # There are some in folders that are used again, as on one's own machine. No failure removes them.
            for path in earlier:
                log_error(f"{path} is the model of an earlier job: this one has left none.")
        hand_over(paths.config, paths.output, paths.model)
        control.close()
    return error.exit_code if error else 0


def _join_hosts(
    environ: Mapping[str, str], paths: Paths, read_limits: Callable[[Mapping[str, object]], Limits]
) -> tuple[Control, Limits]:
    """Return this host's end of the control channel, and the limits that the job sets.

    If the configuration can't be read, the host stays alone: its work reports what is wrong with it.
    """
    try:
        hosts = read_hosts(paths)
        hyperparameters = read_json(paths.config / "hyperparameters.json")
    except (UserError, OSError):
        return Alone(read_limits({})), read_limits({})
    job = environ.get("TRAINING_JOB_ARN") or environ.get("TRAINING_JOB_NAME")
    limits = read_limits(hyperparameters)
    if _has_pipes(paths):  # which can be read once only
        limits = replace(limits, max_restarts=0)
    secret = environ.get("SMXGB_JOB_SECRET")
    return join_hosts(hosts, job, hyperparameters, limits, secret), limits


def _has_pipes(paths: Paths) -> bool:
    channels = read_json(paths.config / "inputdataconfig.json").values()
    modes = (channel.get("TrainingInputMode") for channel in channels if isinstance(channel, dict))
    return any(str(mode).lower() == "pipe" for mode in modes)


def _run(
    work: Program,
    environ: Mapping[str, str],
    root: Path,
    limits: Limits,
    *,
    wakeup: int,
    control: Control,
    on_round: OnRound | None,
) -> JobError | None:
    """Run the work, and wait for the verdict on the job; return why it failed, None if it succeeded."""
    kills = oom_kills(root)

    def start(program: Program) -> Child:
        return Child.start(
            program.name,
            program.command,
            {**child_environ(environ), **program.environ},
            silence=program.silence,
        )

    def explain(child: Child, status: int) -> JobError:
        nonlocal kills
        before, kills = kills, oom_kills(root)
        if status == -signal.SIGKILL and kills > before:
            return out_of_memory(child, environ, root)
        return unreported(child, status)

    try:
        watch = Watch(work, control, wakeup, explain, start, grace=limits.stop_timeout, on_round=on_round)
    except OSError as error:
        return unstartable(work.name, work.command, error)
    return watch.verdict()


@contextmanager
def _signals() -> Iterator[int]:
    """Catch the signals that matter; yield a file descriptor from which their numbers can be read.

    Afterwards this process ignores them: its verdict stands, and it is about to end.
    """
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*STOPS, signal.SIGCHLD):
        signal.signal(number, _do_nothing)
    # The image starts this process with them blocked, so that none comes before it can be handled.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    try:
        yield reading
    finally:
        # Python resets handlers to the default while it ends, but keeps SIG_IGN.
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal. Its number arrives at the wake-up descriptor only if it has a handler."""


def _report(error: JobError, failure: Path) -> None:
    """Write the failure to the log, and to the failure file unless the work has written one there."""
    for line in error.lines():
        log_error(line)
    beside = unfinished(failure)
    try:
        if failure.is_file():
            return
        failure.parent.mkdir(parents=True, exist_ok=True)
        try:
            with create(beside, text=True) as file:
                file.write(error.failure_text())
            beside.replace(failure)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        log_error(f"The failure file {failure} could not be written: {problem.strerror}.")
