"""The worker: from a job to its artefacts. Every mode runs this one function in each of its workers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import AlgorithmError
from smxgb.log import log
from smxgb.machine import memory_available
from smxgb.rows import FLAG, load
from smxgb.scratch import scratch_folder
from smxgb.settings import booster_params
from smxgb.training import gpu
from smxgb.training import report as logbook
from smxgb.training.artifacts import (
    MODEL_NAME,
    are_alike,
    prepare_folders,
    probe,
    stage_importance,
    stage_model,
    stage_report,
)
from smxgb.training.boosting import EarlyStopping, Recipe, boost
from smxgb.training.checks import check_groups, examine
from smxgb.training.evaluation import Evaluator, evaluation_line
from smxgb.training.matrix import build_matrix
from smxgb.training.metrics.own import OwnMetrics
from smxgb.training.phases import PhaseClock, RoundClock
from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    import xgboost as xgb

    from smxgb.job import Device, Job
    from smxgb.rows import Group, Loaded
    from smxgb.settings import Labels
    from smxgb.supervision.messages import Link
    from smxgb.training.boosting import Trained
    from smxgb.training.checks import Examined
    from smxgb.training.evaluation import Values
    from smxgb.training.plan import Plan


@dataclass(frozen=True)
class Place:
    """A worker's place on its host: the device and threads it may use, and which of so many workers it is."""

    device: Device
    threads: int
    index: int = 0
    workers: int = 1

    def say(self, line: str) -> None:
        """Write a line of the log that is the same for all workers of the host."""
        if self.index == 0:
            log(line)


def place_of(job: Job, index: int = 0) -> Place:
    """Return the place of worker `index` of this host."""
    return Place(job.team.device.value, job.threads, index, job.team.workers)


def run(job: Job, place: Place, group: Group, link: Link) -> None:
    """Do this worker's part of the job, from the channels to the artefacts, which the first worker writes.

    Raises:
        UserError: If the data can't be trained on, with all that was found.
        PlatformError: If the host lacks memory or disk.
    """
    for line in logbook.start_block(job):
        place.say(line)
    prepare_folders(job.paths)
    clock = PhaseClock(link)
    with (
        scratch_folder(job.parameters.settings.spool_dir, job.paths.base, link.scratch) as scratch,
        _device(job, place, group, scratch),
    ):
        with clock.phase("load"):
            loaded = load(job, place.threads, group, scratch, link)
        examined = _examine(job, place, loaded, group)
        trained = _train(job, place, group, loaded, examined, scratch=scratch, clock=clock, link=link)
        _check_agreement(trained.booster, group)
        # Nothing that follows needs the others, and what they wait for here they would wait for in vain.
        group.leave()
        if group.rank == 0:
            results = _save(job, loaded, trained, clock)
            said = logbook.closing_line(trained, job.paths.model / MODEL_NAME)
        else:
            results = []
            said = f"Trained {counted(trained.rounds, 'round')}. The first host writes the model."
    link.succeeded(said, results)


def _device(job: Job, place: Place, group: Group, scratch: Path) -> AbstractContextManager[None]:
    return gpu.in_use(job.hosts, group, scratch) if place.device == "cuda" else nullcontext()


def _check_agreement(booster: xgb.Booster, group: Group) -> None:
    """Raise AlgorithmError if a worker has trained another model than the first, whose is saved."""
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


def _save(job: Job, loaded: Loaded, trained: Trained, clock: PhaseClock) -> list[Path]:
    """Write the artefacts beside their places; return where."""
    folder = job.paths.output_data
    with clock.phase("save"):
        linear = job.parameters.settings.booster == "gblinear"
        # Before the model, for which the booster loses the names that were invented.
        importance = stage_importance(trained.booster, loaded.schema, folder, linear=linear)
        model = stage_model(trained.booster, loaded.schema, job.paths.model)
    report = logbook.final_report(job, loaded.all_rows, loaded.schema, trained, clock)
    log(clock.summary())
    return [importance, stage_report(report, folder), model]


def _train(
    job: Job,
    place: Place,
    group: Group,
    loaded: Loaded,
    examined: Examined,
    *,
    scratch: Path,
    clock: PhaseClock,
    link: Link,
) -> Trained:
    """Build the matrices and train on them; they end with this call, before their files in `scratch` do."""
    with clock.phase("matrix"):
        matrices = _matrices(job, place, loaded, examined.plan, scratch)
    with clock.phase("train"):
        evaluator = _evaluator(job, loaded, examined.classes, matrices, group)
        recipe = _recipe(job, place, examined)
        return boost(recipe, matrices["train"], evaluator, _after_round(job, group, link))


def _labels(loaded: Loaded, group: Group) -> dict[str, Labels]:
    """Return the labels of each channel, and host if there are several, that has rows."""
    labels: dict[str, Labels] = {}
    for host, summaries in zip(group.hosts, loaded.summaries, strict=True):
        for name, summary in summaries.items():
            if summary.label:
                place = name if group.size == 1 else f"{name} of host {host}"
                labels[place] = labels[place].merge(summary.label) if place in labels else summary.label
    return labels


def _examine(job: Job, place: Place, loaded: Loaded, group: Group) -> Examined:
    columns = len(loaded.schema.names)
    examined = examine(
        job.parameters,
        loaded.schema,
        _labels(loaded, group),
        {name: kept.summary.shape(columns) for name, kept in loaded.channels.items()},
        reading=max(kept.reading for kept in loaded.channels.values()),
        available=memory_available() // place.workers,
        gpu_available=gpu.free_memory() if place.device == "cuda" else None,
        whole=loaded.all_rows,
    )
    for line in examined.describe():
        place.say(line)
    check_groups(job.parameters, loaded.channels)
    return examined


def _matrices(job: Job, place: Place, loaded: Loaded, plan: Plan, scratch: Path) -> dict[str, xgb.DMatrix]:
    matrices: dict[str, xgb.DMatrix] = {}
    for name, kept in loaded.channels.items():
        matrices[name] = build_matrix(
            kept,
            loaded.schema,
            plan.kind,
            threads=place.threads,
            max_bin=job.parameters.settings.max_bin,
            cache=scratch / f"{name}-matrix",
            on_gpu=place.device == "cuda",
            reference=matrices.get("train"),
        )
    return matrices


def _evaluator(
    job: Job, loaded: Loaded, classes: int | None, matrices: Mapping[str, xgb.DMatrix], group: Group
) -> Evaluator:
    settings, metrics = job.parameters.settings, job.parameters.metrics
    labels = loaded.all_rows["train"].label
    own = OwnMetrics(
        settings.objective,
        [metric.base for metric in metrics if metric.own],
        classes or 2,
        centre=(labels.lowest + labels.highest) / 2 if labels else 0.0,
    )
    seen = {name: matrix for name, matrix in matrices.items() if name != "train" or settings.eval_train}
    return Evaluator(metrics, own, seen, group, per_query="group" in loaded.all_rows["train"].roles)


def _after_round(job: Job, group: Group, link: Link) -> Callable[[int, Values], None]:
    """Return what the first worker says after each round; all have the same values."""
    rounds = RoundClock(link, job.parameters.settings.num_round)

    def after_round(number: int, values: Values) -> None:
        if group.rank == 0:
            log(evaluation_line(number, values))
            rounds.finished(number)

    return after_round


def _recipe(job: Job, place: Place, examined: Examined) -> Recipe:
    settings = job.parameters.settings
    parameters = {**booster_params(job.parameters), **examined.constraints}
    parameters |= {"device": place.device, "nthread": place.threads}
    if examined.classes is not None:
        parameters["num_class"] = examined.classes
    early_stopping = None
    if settings.early_stopping_rounds:
        watched = job.parameters.monitored
        early_stopping = EarlyStopping(
            settings.early_stopping_rounds, watched.name, "validation", maximise=watched.maximised
        )
        place.say(early_stopping.describe())
    return Recipe(parameters, settings.num_round, early_stopping)
