"""The journal of a training: from which state it goes on, and the checkpoints that it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.log import log
from smxgb.training.base_state import state_of
from smxgb.training.checkpoint_file import Checkpoint, decode, encode
from smxgb.training.checkpoints import CheckpointFolder, CheckpointWriter, outlook
from smxgb.training.fingerprint import fingerprint
from smxgb.wording import counted, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import Job
    from smxgb.rows import Group, Loaded, Schema, Summary
    from smxgb.training.boosting import Recipe, Run
    from smxgb.training.state import TrainingState


class Journal:
    """What the workers of a job know of its checkpoints. The first worker alone reads and writes them.

    Args:
        job: The job.
        group: All workers.
        first: The state of the model that training goes on from, None without one.
        writer: Writes the checkpoints; None on other workers than the first, and where there is no folder.
        folder: Where they are; None as `writer`.
    """

    def __init__(
        self,
        job: Job,
        group: Group,
        first: TrainingState | None,
        folder: CheckpointFolder | None = None,
        writer: CheckpointWriter | None = None,
    ) -> None:
        self._first = first
        self._job = job
        self._group = group
        self._folder = folder
        self._writer = writer

    def start(self, recipe: Recipe) -> TrainingState | None:
        """Return the state from which all workers go on, None if they begin with no model.

        The first worker reads it and sends it to the others, so it matters not which host has the folder.

        Raises UserError if the folder holds only checkpoints of jobs that differ.
        """
        if self._job.checkpoints is None:
            return self._first
        found = self._found(recipe) if self._folder else None
        data = self._group.broadcast(encode(found) if found else b"")
        return decode(data).state if data else self._first

    def after_round(self, run: Run, *, is_last: bool) -> None:
        """Write a checkpoint if it is time for it."""
        if self._writer:
            self._writer.after_round(run, is_last=is_last)

    def tell(self, seconds: float) -> None:
        """Log what the checkpoints have cost of so many seconds of training."""
        if self._writer is None:
            return
        cost = self._writer.cost
        share = 100 * cost.seconds / seconds if seconds else 0
        log(
            f"Checkpoints: {cost.written} written, {readable_bytes(cost.bytes)}, in {cost.seconds:.2f} s "
            f"({share:.2f} % of the training)."
        )

    def _found(self, recipe: Recipe) -> Checkpoint | None:
        assert self._folder  # noqa: S101 - the caller has looked
        found = self._folder.newest(self._job.parameters.settings.checkpoint_mismatch, self._group.size)
        if found is None:
            return None
        if not recipe.can_continue and not recipe.is_over(found.state.rounds, found.state.best):
            log(
                "XGBoost can't go on from a checkpoint of such a job (lambdarank_unbiased, "
                "process_type=update): it begins anew, and gives the same model."
            )
            return None
        if found.workers != self._group.size:
            log(
                f"The checkpoint is of a job with {counted(found.workers, 'worker')}, this one has "
                f"{self._group.size}: the model may differ a little from that of one job."
            )
        settings = self._job.parameters.settings
        if (
            settings.booster == "gblinear"
            and settings.updater != ("coord_descent",)
            and self._job.threads > 1
        ):
            log("booster=gblinear with several threads (shotgun) gives another model at each run.")
        return found


def checkpoint_outlook(
    job: Job, schema: Schema | None, rows: Mapping[str, Summary], classes: int | None
) -> Iterator[str]:
    """Yield lines on the checkpoints of a job that has not begun; `rows` are those that are known in full."""
    if job.checkpoints and schema:
        facts = fingerprint(job.parameters, schema, rows, classes, job.base)
        yield from outlook(job.checkpoints, facts, job.parameters.settings.checkpoint_interval)


def open_journal(job: Job, group: Group, loaded: Loaded, classes: int | None) -> Journal:
    """Return the journal of this worker.

    Raises UserError if the features of the rows are not those of the model that training goes on from.
    """
    settings, base, schema = job.parameters.settings, job.base, loaded.schema
    first = state_of(base, schema, update=settings.process_type == "update") if base else None
    if job.checkpoints is None or group.rank != 0:
        return Journal(job, group, first)
    facts = fingerprint(job.parameters, schema, loaded.all_rows, classes, base)
    folder = CheckpointFolder(job.checkpoints, facts)
    try:
        folder.prepare()
    except OSError as error:
        log(f"The checkpoint folder {job.checkpoints} can't be written: {error.strerror}.")
    interval, keep = settings.checkpoint_interval, settings.checkpoint_keep
    return Journal(job, group, first, folder, CheckpointWriter(folder, facts, group.size, interval, keep))
