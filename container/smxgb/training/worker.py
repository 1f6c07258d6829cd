"""The worker: from a job to its artefacts. Every mode runs this one function in each of its workers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from signal import SIGTERM
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import AlgorithmError, PlatformError
from smxgb.log import log, log_values, notice, notices
from smxgb.rows import ATTRIBUTE, COUNT, FLAG, FLAGS, Signature, count_bins, load, sampled, summarise
from smxgb.scratch import scratch_folder
from smxgb.settings import booster_params
from smxgb.supervision.link import dying_after
from smxgb.supervision.messages import Planned, Scratch, Stop, Succeeded
from smxgb.training import gpu
from smxgb.training.artifacts import (
    MODEL_NAME,
    prepare_folders,
    stage_importance,
    stage_model,
    stage_report,
)
from smxgb.training.boosting import EarlyStopping, Recipe, boost, finish
from smxgb.training.checks import Seen, check_groups, check_rows
from smxgb.training.evaluation import Evaluator, evaluation_line
from smxgb.training.journal import open_journal
from smxgb.training.matrix import MatrixOptions, build_matrix
from smxgb.training.memory_needs import XGBOOST_MAX_BIN
from smxgb.training.memory_plan import free_memory
from smxgb.training.metrics import Problem
from smxgb.training.model import are_alike, probe
from smxgb.training.notices import (
    OBSERVED,
    Observed,
    Observer,
    about_rows,
    about_training,
    about_watching_train,
)
from smxgb.training.phases import PhaseClock, RoundClock
from smxgb.training.report import closing_line, final_report, start_block
from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    import xgboost as xgb

    from smxgb.errors import JobError
    from smxgb.job import Device, Job
    from smxgb.rows import Group, Loaded, Shape, Stored
    from smxgb.settings import Labels
    from smxgb.supervision.link import Link
    from smxgb.training.boosting import Run, Trained
    from smxgb.training.checks import Checked
    from smxgb.training.evaluation import Values
    from smxgb.training.journal import Journal


@dataclass(frozen=True)
class _Worker:
    """Worker `index` of this host, in the group of all workers."""

    job: Job
    group: Group
    link: Link
    index: int
    clock: PhaseClock

    @property
    def device(self) -> Device:
        """Where it trains."""
        return self.job.team.device.value

    def say(self, line: str) -> None:
        """Write a line of the log that is the same for all workers of the host."""
        if self.index == 0:
            log(line)

    def point_out(self, texts: Iterable[str]) -> None:
        """Write notices that are the same for all workers."""
        if self.group.rank == 0:
            for text in texts:
                notice(text)


def run(job: Job, group: Group, link: Link, index: int = 0) -> None:
    """Do the part of worker `index` of this host, from the channels to the artefacts.

    The first worker of the group writes the artefacts.

    Raises:
        UserError: If the data can't be trained on, with all that was found.
        PlatformError: If the host lacks memory or disk.
    """
    worker = _Worker(job, group, link, index, PhaseClock(link))
    for line in start_block(job):
        worker.say(line)
    prepare_folders(job.paths)
    spool_dir = job.parameters.settings.spool_dir
    with (
        scratch_folder(spool_dir, job.paths.base, lambda made: link.send(Scratch(made))) as scratch,
        _device_in_use(worker, scratch),
    ):
        with worker.clock.phase("load"):
            loaded = load(job, job.threads, group, scratch, link)
        trained = _train(worker, loaded, _check(worker, loaded, scratch), scratch)
        if trained.is_stopped and not job.parameters.settings.save_model_on_termination:
            raise _stopped(worker, trained)
        parameters = job.parameters
        worker.point_out(about_training(parameters.settings, parameters.monitored, trained))
        _check_agreement(trained.booster, group)
        # Saving needs no other worker: if it fails, no other worker must be waiting for it in the group.
        results = group.outside(lambda: _save(worker, loaded, trained)) if group.rank == 0 else []
    link.send(Succeeded(_last_line(worker, trained), tuple(results)))


def _device_in_use(worker: _Worker, scratch: Path) -> AbstractContextManager[None]:
    if worker.device != "cuda":
        return nullcontext()
    limit = worker.job.parameters.settings.start_timeout

    def meeting(apart: Callable[[], PlatformError]) -> AbstractContextManager[None]:
        return dying_after(limit, apart, worker.link)

    return gpu.in_use(worker.job.hosts, worker.group, scratch, meeting)


def _last_line(worker: _Worker, trained: Trained) -> str:
    if worker.group.rank == 0:
        return closing_line(trained, worker.job.paths.model / MODEL_NAME)
    verb = "Stopped after" if trained.is_stopped else "Trained"
    return f"{verb} {counted(trained.rounds, 'round')}. The first host writes the model."


def _stopped(worker: _Worker, trained: Trained) -> JobError:
    """Return the end of a job that is stopped and is to leave no model."""
    kept = "and there is no checkpoint folder (checkpoint_s3_uri)"
    if worker.job.checkpoints:
        kept = "but its checkpoint: start the job again to go on from there"
    return PlatformError(
        f"the job was stopped after {counted(trained.rounds, 'round')}, no model was written "
        f"(save_model_on_termination=false), {kept}.",
        exit_code=128 + SIGTERM,
        origin="everywhere",
    )


def _check(worker: _Worker, loaded: Loaded, scratch: Path) -> Checked:
    """Check the rows against the settings, and say what they mean for each other."""
    parameters, columns = worker.job.parameters, len(loaded.schema.names)
    seen = Seen(
        loaded.schema,
        _labels(loaded, worker.group),
        {name: _shape(kept, columns) for name, kept in loaded.channels.items()},
        max(kept.reading for kept in loaded.channels.values()),
        loaded.all_rows,
        _count_bins(worker, loaded),
    )
    free = free_memory(worker.job.team, scratch)
    checked = check_rows(parameters, seen, free, partial(_of_all, worker.group), worker.job.plans_given_up)
    worker.link.send(Planned(has_slower=checked.plan.has_slower))
    for line in checked.describe():
        worker.say(line)
    worker.point_out(checked.notes)
    check_groups(parameters, loaded.channels)
    return checked


def _shape(kept: Stored, columns: int) -> Shape:
    """Return the shape of a channel; of rows that no pass has read whole, the first tell what is missing."""
    shape = kept.summary.shape(columns)
    if kept.summary.present is not None or not kept.rows:
        return shape
    return replace(shape, missing=summarise(next(kept.batches())).shape(columns).missing)


def _of_all(group: Group, fits: list[bool]) -> list[bool]:
    """Return which plans fit for all workers."""
    return [all(each) for each in zip(*group.gather(fits, FLAGS), strict=True)]


def _count_bins(worker: _Worker, loaded: Loaded) -> int:
    """Return how many histogram bins the features have, by the worker whose first rows show most."""
    first = next(loaded.channels["train"].batches())
    own = count_bins(first, worker.job.parameters.settings.max_bin or XGBOOST_MAX_BIN)
    return max(worker.group.gather(own, COUNT))


def _labels(loaded: Loaded, group: Group) -> dict[str, Labels]:
    """Return the labels of each channel that has rows; with several workers, of each channel of each host."""
    labels: dict[str, Labels] = {}
    for host, summaries in zip(group.hosts, loaded.summaries, strict=True):
        for name, summary in summaries.items():
            if summary.label:
                owner = name if group.size == 1 else f"{name} of host {host}"
                labels[owner] = labels[owner].merge(summary.label) if owner in labels else summary.label
    return labels


def _train(worker: _Worker, loaded: Loaded, checked: Checked, scratch: Path) -> Trained:
    """Build the matrices and train on them, from the newest checkpoint if there is one.

    The matrices are gone when this returns: they must not outlive their files in `scratch`.
    """
    recipe = _recipe(worker, loaded, checked)
    journal = open_journal(worker.job, worker.group, loaded, checked.classes)
    start = journal.start(recipe)
    if start and recipe.is_over(start.rounds, start.best):
        worker.say(f"All {start.rounds} rounds are done: the model is written.")
        return finish(recipe, start)
    with worker.clock.phase("matrix"):
        matrices = _matrices(worker, loaded, checked, scratch)
    with worker.clock.phase("train"):
        evaluator = _evaluator(worker, loaded, checked, matrices)
        after_round = _after_round(worker, recipe, journal, start.rounds if start else 0)
        trained = boost(recipe, matrices["train"], evaluator, after_round, start)
    journal.tell(worker.clock.seconds("train"))
    return trained


def _matrices(worker: _Worker, loaded: Loaded, checked: Checked, scratch: Path) -> dict[str, xgb.DMatrix]:
    options = MatrixOptions(
        checked.plan.kind,
        worker.job.threads,
        worker.job.parameters.settings.max_bin,
        on_gpu=worker.device == "cuda",
    )
    matrices: dict[str, xgb.DMatrix] = {}
    rows = loaded.all_rows
    observed: dict[str, Observed] = {}
    for name, kept in loaded.channels.items():
        observer = Observer(
            loaded.schema, rows["train"].label, of_train=name == "train", compared=len(rows) > 1
        )
        cache, watched = scratch / f"{name}-matrix", observer.watch(kept)
        reference = matrices.get("train") or _reference(worker, loaded, options, cache)
        matrices[name] = build_matrix(watched, loaded.schema, options, cache, reference)
        observed[name] = observer.observed
    by_rank = worker.group.gather(observed, OBSERVED)
    of_all = {name: reduce(Observed.merge, (each[name] for each in by_rank)) for name in observed}
    worker.point_out(about_rows(worker.job.parameters.settings, loaded.schema, rows, of_all))
    return matrices


def _reference(worker: _Worker, loaded: Loaded, options: MatrixOptions, cache: Path) -> xgb.DMatrix | None:
    """Return a matrix of a sample, whose quantile cuts that of `train` takes over; None to cut all rows."""
    if options.kind not in {"quantile", "external"} or options.on_gpu:
        return None
    wanted = worker.job.parameters.settings.sketch_rows
    sample = sampled(loaded.channels["train"], loaded.schema, loaded.summaries, wanted, worker.group)
    if sample is None:
        return None
    worker.say(f"Quantile cuts: from a sample of {wanted:,} values of each column (sketch_rows).")
    return build_matrix(sample, loaded.schema, replace(options, kind="quantile"), cache)


def _evaluator(
    worker: _Worker, loaded: Loaded, checked: Checked, matrices: Mapping[str, xgb.DMatrix]
) -> Evaluator:
    settings, train = worker.job.parameters.settings, loaded.all_rows["train"]
    problem = Problem(
        settings.objective,
        checked.classes or 2,
        centre=(train.label.lowest + train.label.highest) / 2 if train.label else 0.0,
        has_queries="group" in train.roles,
    )
    # Without a validation channel early stopping watches train.
    with_train = settings.eval_train or (settings.early_stopping_rounds and "validation" not in matrices)
    evaluated = {name: matrix for name, matrix in matrices.items() if name != "train" or with_train}
    return Evaluator(
        worker.job.parameters.metrics,
        problem,
        evaluated,
        worker.group,
        threads=worker.job.threads,
        on_gpu=worker.device == "cuda",
    )


def _recipe(worker: _Worker, loaded: Loaded, checked: Checked) -> Recipe:
    settings = worker.job.parameters.settings
    parameters = {**booster_params(worker.job.parameters), **checked.constraints}
    parameters |= {"device": worker.device, "nthread": worker.job.threads}
    if checked.classes is not None:
        parameters["num_class"] = checked.classes
    early_stopping = None
    if settings.early_stopping_rounds:
        watched = worker.job.parameters.monitored
        data = "validation" if "validation" in loaded.channels else "train"
        early_stopping = EarlyStopping(
            settings.early_stopping_rounds, watched.name, data, maximise=watched.maximised
        )
        if data == "train":
            worker.point_out([about_watching_train()])
        worker.say(early_stopping.describe())
    base = worker.job.base
    is_added = base and settings.process_type != "update"
    return Recipe(parameters, settings.num_round + (base.rounds if base and is_added else 0), early_stopping)


def _after_round(
    worker: _Worker, recipe: Recipe, journal: Journal, done: int
) -> Callable[[Run, Values], bool]:
    """Return what follows each round. The first worker logs its values, which are those of all workers.

    If any worker is told to stop, all of them hear of it in the same round.
    """
    rounds = RoundClock(worker.link, recipe.rounds, done)

    def after_round(run: Run, values: Values) -> bool:
        if worker.group.rank == 0:
            log_values(evaluation_line(run.rounds - 1, values))
            rounds.finished(run.rounds - 1)
        told = np.array([worker.link.has_heard(Stop)], np.float64)
        is_stopped = bool(worker.group.sum(told).any())
        journal.after_round(run, is_last=run.is_over or is_stopped)
        return is_stopped

    return after_round


def _check_agreement(booster: xgb.Booster, group: Group) -> None:
    """Raise AlgorithmError if a worker has trained another model than the first worker, whose is saved."""
    if group.size == 1:
        return
    mine = probe(booster)
    first = np.frombuffer(group.broadcast(mine.tobytes()), mine.dtype)
    alike = first.size == mine.size and are_alike(mine.ravel(), first)
    strays = [host for host, same in zip(group.hosts, group.gather(alike, FLAG), strict=True) if not same]
    if strays:
        raise AlgorithmError(
            f"the model that {', '.join(dict.fromkeys(strays))} trained is not that of {group.hosts[0]}: "
            "none is saved. This is a fault of the container or of XGBoost: report it, with the log."
        )


def _save(worker: _Worker, loaded: Loaded, trained: Trained) -> list[Path]:
    """Write the artefacts under unfinished names; return their paths."""
    job, clock = worker.job, worker.clock
    folder = job.paths.output_data
    with clock.phase("save"):
        linear = job.parameters.settings.booster == "gblinear"
        # Before the model: for it, the booster loses the names that were invented.
        importance = stage_importance(trained.booster, loaded.schema, folder, linear=linear)
        settings = job.parameters.settings
        signature = Signature.of_training(loaded.schema, settings.infinity, settings.objective)
        trained.booster.set_attr(**{ATTRIBUTE: signature.attribute})
        model = stage_model(trained.booster, loaded.schema, job.paths.model)
    report = final_report(job, loaded.all_rows, loaded.schema, trained, clock, notices=notices())
    log(clock.summary())
    return [importance, stage_report(report, folder), model]
