"""Checkpoints: the folder that holds them, when one is written, and which one training goes on from.

SageMaker uploads the folder while the job runs, so a file has its final name only when it is complete.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.job import read_model
from smxgb.log import log
from smxgb.supervision.publishing import PARTIAL, create, unfinished
from smxgb.training.checkpoint_file import Checkpoint, decode, encode
from smxgb.training.fingerprint import differences, digest
from smxgb.training.state import TrainingState
from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Literal

    from smxgb.training.boosting import Run
    from smxgb.training.fingerprint import Facts

OLD_NAME = re.compile(r"xgboost-checkpoint(?:\.([0-9]+)|_([0-9]+)\.ubj)")
"""The names that AWS's images give the model after round n, counted from 0."""

NAME = re.compile(r"smxgb-([0-9a-f]{8})-([0-9]+)\.checkpoint")
"""The names of checkpoints: the digest of the job's fingerprint, and the number of rounds."""

DIGITS = 8
"""Digits of the rounds in a name, so that names sort as numbers."""

SHARE = 0.005
"""The share of the time that is planned for writing checkpoints: half of the 1 % that they may cost, for one
may take longer than the one before it."""

LONGEST_PAUSE = 300.0
"""Seconds between two checkpoints at most, if no round is longer."""

SHOWN = 5
"""At most 5 files that are passed over, and differences between two jobs, are named."""


class CheckpointFolder:
    """The folder of the checkpoints of one job, which may hold those of others."""

    def __init__(self, path: Path, facts: Facts) -> None:
        self.path = path
        self._facts = facts
        self._digest = digest(facts)

    def place(self, rounds: int) -> Path:
        """Return the path of the checkpoint after so many rounds."""
        return self.path / f"smxgb-{self._digest}-{rounds:0{DIGITS}}.checkpoint"

    def write(self, data: bytes, rounds: int, keep: int) -> None:
        """Write a checkpoint, and remove this job's others but the newest. Raises OSError if that fails."""
        place = self.place(rounds)
        beside = unfinished(place)
        try:
            with create(beside) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(place)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            raise
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for _, old in self._own()[keep:]:
            old.unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the folder, and remove the file that a killed job was writing. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        for path in self.path.glob(f"{PARTIAL}*.checkpoint"):
            path.unlink(missing_ok=True)

    def newest(self, mismatch: Literal["error", "restart"], workers: int) -> Checkpoint | None:
        """Return this job's checkpoint of the most rounds, None if there is none; pass over broken ones.

        A checkpoint of AWS's image does not say how many workers it is of: it is taken for one of `workers`.

        Raises UserError if there are only checkpoints of jobs that differ, unless `mismatch` is "restart".
        """
        _say_passed_over(self._foreign())
        for _, path in self._own():
            if found := _read(path):
                log(f"Resuming from {path}: {found.state.rounds} rounds are done.")
                return found
        for number, path in self._old():
            if state := self._read_old(path, number + 1):
                log(f"Resuming from {path}, of AWS's image: {state.rounds} rounds are done.")
                return Checkpoint(state, self._facts, workers)
        for _, path in self.named(own=False):
            if found := _read(path):
                self._refuse(path, found, mismatch)
                break
        return None

    def _refuse(self, path: Path, found: Checkpoint, mismatch: Literal["error", "restart"]) -> None:
        changed = list(differences(found.facts, self._facts))
        more = f", and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        shown = "; ".join(changed[:SHOWN])
        text = f"{path} is the checkpoint of a job that differs from this one: {shown}{more}"
        if mismatch == "restart":
            log(f"{text}. This job begins anew (checkpoint_mismatch=restart).")
            return
        raise UserError(
            f"{text}. Give this job a checkpoint folder of its own (checkpoint_s3_uri), or set "
            "checkpoint_mismatch=restart to begin anew."
        )

    def _own(self) -> list[tuple[int, Path]]:
        return self.named(own=True)

    def named(self, *, own: bool) -> list[tuple[int, Path]]:
        """Return the checkpoints of this job, or those of others, by their rounds, the most first."""
        named = ((NAME.fullmatch(path.name), path) for path in self._files())
        found = [
            (int(match[2]), path) for match, path in named if match and (match[1] == self._digest) == own
        ]
        return sorted(found, reverse=True)

    def _old(self) -> list[tuple[int, Path]]:
        """Return the checkpoints of AWS's images by their round, the last first."""
        named = ((OLD_NAME.fullmatch(path.name), path) for path in self._files())
        return sorted(((int(match[1] or match[2]), path) for match, path in named if match), reverse=True)

    def _read_old(self, path: Path, rounds: int) -> TrainingState | None:
        """Return the state that the model of an earlier image stands for; log why not, if it fits not."""
        try:
            model = read_model(path.read_bytes(), str(path))
        except (OSError, UserError) as error:
            log(f"{path} is passed over: {error}.")
            return None
        found = {
            "rounds": (model.rounds, rounds),
            "objective": (json.dumps(model.objective), self._facts.get("objective", '"reg:squarederror"')),
            "features": (str(model.features), self._facts["features"]),
        }
        for name, (held, expected) in found.items():
            if held != expected:
                log(f"{path} is passed over: the {name} of its model: {held}, not {expected}.")
                return None
        return TrainingState(rounds, model.data)

    def _foreign(self) -> Iterator[str]:
        for path in self._files():
            if not NAME.fullmatch(path.name) and not OLD_NAME.fullmatch(path.name):
                yield f"{path.name}/" if path.is_dir() else path.name

    def _files(self) -> list[Path]:
        """Return what is in the folder; names that begin with a dot are SageMaker's, or unfinished."""
        with suppress(OSError):
            return sorted(path for path in self.path.iterdir() if not path.name.startswith("."))
        return []


def _read(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file; log why it is passed over if there is none."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:
        reason = str(error)
    log(f"{path} is passed over: {reason}.")
    return None


def _say_passed_over(names: Iterator[str]) -> None:
    found = list(names)
    for name in found[:SHOWN]:
        log(f"{name} in the checkpoint folder is passed over: it is no checkpoint.")
    if len(found) > SHOWN:
        log(f"{len(found) - SHOWN} more in the checkpoint folder are passed over: they are no checkpoints.")


@dataclass
class Cost:
    """How many checkpoints were written, their bytes, and the seconds that this took."""

    written: int = 0
    bytes: int = 0
    seconds: float = 0.0


def outlook(path: Path, facts: Facts, interval: int | None) -> Iterator[str]:
    """Yield lines that say how often a job will write checkpoints, and whether it would go on from one.

    `facts` are those that are known: the rows of a job that was not read whole are not among them.
    """
    often = "as often as 1 % of the time allows, at least every 5 minutes"
    if interval:
        often = f"every {counted(interval, 'round')}"
    yield f"Checkpoints: in {path}, {often}, and at the end."
    folder = CheckpointFolder(path, facts)
    for _, file in sorted(folder.named(own=True) + folder.named(own=False), reverse=True):
        if found := _read(file):
            known = {
                name: value for name, value in found.facts.items() if not _is_of_rows(name) or name in facts
            }
            changed = list(differences(known, facts))
            yield (
                f"{file} is of a job that differs: {'; '.join(changed[:SHOWN])}."
                if changed
                else f"The job would go on from {file}: {found.state.rounds} rounds are done."
            )
            return


def _is_of_rows(name: str) -> bool:
    return name.startswith(("rows of ", "labels of ", "classes"))


class CheckpointWriter:
    """Writes checkpoints while training runs. A disk that fails costs a line in the log, not the job.

    Args:
        folder: Where they are written.
        facts: The facts of the job.
        workers: The number of workers.
        interval: Rounds between two checkpoints; None: the first after the first round, then as often as
            `SHARE` of the time allows, but at least every `LONGEST_PAUSE` seconds.
        keep: How many are kept.
    """

    def __init__(
        self, folder: CheckpointFolder, facts: Facts, workers: int, interval: int | None, keep: int
    ) -> None:
        self._folder = folder
        self._facts = facts
        self._workers = workers
        self._interval = interval
        self._keep = keep
        self._begin = self._last = time.monotonic()
        self._last_cost = 0.0
        self._has_failed = False
        self.cost = Cost()

    def after_round(self, run: Run, *, is_last: bool) -> None:
        """Write a checkpoint if it is time for it."""
        if not (is_last or self._is_due(run.rounds)):
            return
        begin = time.monotonic()
        data = encode(Checkpoint(run.state(), self._facts, self._workers))
        try:
            self._folder.write(data, run.rounds, self._keep)
        except OSError as error:
            if not self._has_failed:
                log(f"No checkpoint could be written in {self._folder.path}: {error.strerror}.")
            self._has_failed = True
        else:
            self._has_failed = False
            self.cost.written += 1
            self.cost.bytes += len(data)
        self._last = time.monotonic()
        self._last_cost = self._last - begin
        self.cost.seconds += self._last_cost

    def _is_due(self, rounds: int) -> bool:
        if self._interval:
            return rounds % self._interval == 0
        now = time.monotonic()
        allowed = SHARE * (now - self._begin)
        is_first = not self.cost.written and not self._has_failed
        return is_first or self.cost.seconds + self._last_cost <= allowed or now - self._last >= LONGEST_PAUSE
