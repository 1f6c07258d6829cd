"""The worker: from a job to its artefacts. Every mode runs this one function in each of its workers."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb import logbook
from smxgb.agreement import by_all
from smxgb.artifacts import prepare_folders, publish_model, stage_model, write_importance, write_report
from smxgb.boosting import EarlyStopping, Recipe, boost
from smxgb.environment import free_bytes, memory_available
from smxgb.errors import UserError
from smxgb.evaluation import Evaluator, evaluation_line
from smxgb.hyperparameters import DEFAULT_OBJECTIVE, booster_params, resolve_constraints
from smxgb.labels import check_labels
from smxgb.loading import load
from smxgb.matrix import build_matrix
from smxgb.own_metrics import OwnMetrics
from smxgb.plan import make_plan
from smxgb.progress import PhaseClock, RoundClock, log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import xgboost as xgb

    from smxgb.batch import Schema
    from smxgb.boosting import Trained
    from smxgb.evaluation import Values
    from smxgb.group import Group
    from smxgb.job import Device, Job
    from smxgb.loading import Loaded
    from smxgb.plan import Plan
    from smxgb.progress import Link
    from smxgb.store import Labels


@dataclass(frozen=True)
class Place:
    """A worker's place on its host: the device and threads it may use."""

    device: Device
    threads: int


def run(job: Job, place: Place, group: Group, link: Link) -> None:
    """Do this worker's part of the job, from the channels to the artefacts, which the first worker writes.

    Raises:
        UserError: If the data can't be trained on, with all that was found.
        PlatformError: If the host lacks memory or disk.
    """
    for line in logbook.start_block(job):
        log(line)
    prepare_folders(job.paths)
    clock = PhaseClock(link)
    with _scratch_folder(job, link) as scratch:
        with clock.phase("load"):
            loaded = load(job, place.threads, group, scratch)
        trained = _train(job, place, group, loaded, scratch=scratch, clock=clock, link=link)
        # Nothing that follows needs the others, and what they wait for here they would wait for in vain.
        group.leave()
        if group.rank == 0:
            said = _save(job, loaded, trained, clock)
        else:
            said = f"Trained {trained.rounds} rounds. The first host writes the model."
    link.succeeded(said)


def _save(job: Job, loaded: Loaded, trained: Trained, clock: PhaseClock) -> str:
    """Write the artefacts; return the last line of the log."""
    with clock.phase("save"):
        write_importance(
            trained.booster,
            loaded.schema,
            job.paths.output_data,
            linear=job.parameters.settings.booster == "gblinear",
        )
        staged = stage_model(trained.booster, loaded.schema, job.paths.model)
    report = logbook.final_report(job, loaded.all_rows, loaded.schema, trained, clock)
    write_report(report, job.paths.output_data)
    path = publish_model(staged)
    log(clock.summary())
    return logbook.closing_line(trained, path)


def _train(
    job: Job,
    place: Place,
    group: Group,
    loaded: Loaded,
    *,
    scratch: Path,
    clock: PhaseClock,
    link: Link,
) -> Trained:
    """Build the matrices and train on them; they end with this call, before their files in `scratch` do."""
    with by_all():
        classes = check_labels(job.parameters, _labels(loaded, group), loaded.all_rows["train"].rows)
    plan = _plan(job, loaded)
    with clock.phase("matrix"):
        matrices = _matrices(job, place, loaded, plan, scratch)
    with clock.phase("train"):
        evaluator = _evaluator(job, loaded, classes, matrices, group)
        recipe = _recipe(job, place, loaded.schema, classes)
        return boost(recipe, matrices["train"], evaluator, _after_round(job, group, link))


@contextmanager
def _scratch_folder(job: Job, link: Link) -> Iterator[Path]:
    """Make a folder for what does not stay in memory, on the volume with most room; remove it after."""
    chosen = job.parameters.settings.spool_dir
    places = [Path(chosen)] if chosen else [Path(tempfile.gettempdir()), job.paths.base]
    place = max((place for place in places if _writable(place)), key=free_bytes, default=places[0])
    if chosen and not _writable(place):
        raise UserError(
            f"spool_dir={chosen!r} is no folder that can be written: give one that exists, or leave it out."
        )
    with tempfile.TemporaryDirectory(prefix="smxgb-", dir=place, ignore_cleanup_errors=True) as folder:
        link.scratch(Path(folder))
        yield Path(folder)


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _labels(loaded: Loaded, group: Group) -> dict[str, Labels]:
    """Return the labels of each channel, and host if there are several, that has rows."""
    return {
        name if group.size == 1 else f"{name} of host {host}": summary.label
        for host, summaries in zip(group.hosts, loaded.summaries, strict=True)
        for name, summary in summaries.items()
        if summary.label
    }


def _plan(job: Job, loaded: Loaded) -> Plan:
    columns = len(loaded.schema.names)
    shapes = {name: kept.summary.shape(columns) for name, kept in loaded.channels.items()}
    plan = make_plan(job.parameters, shapes, memory_available())
    log(plan.describe())
    plan.check()
    return plan


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
            reference=matrices.get("train"),
        )
    return matrices


def _evaluator(
    job: Job, loaded: Loaded, classes: int | None, matrices: Mapping[str, xgb.DMatrix], group: Group
) -> Evaluator:
    settings, metrics = job.parameters.settings, job.parameters.metrics
    labels = loaded.all_rows["train"].label
    own = OwnMetrics(
        settings.objective or DEFAULT_OBJECTIVE,
        [metric.base for metric in metrics if metric.own],
        classes or 2,
        centre=(labels.lowest + labels.highest) / 2 if labels else 0.0,
    )
    seen = {name: matrix for name, matrix in matrices.items() if name != "train" or settings.eval_train}
    return Evaluator(metrics, own, seen, group)


def _after_round(job: Job, group: Group, link: Link) -> Callable[[int, Values], None]:
    """Return what the first worker says after each round; all have the same values."""
    rounds = RoundClock(link, job.parameters.settings.num_round)

    def after_round(number: int, values: Values) -> None:
        if group.rank == 0:
            log(evaluation_line(number, values))
            rounds.finished(number)

    return after_round


def _recipe(job: Job, place: Place, schema: Schema, classes: int | None) -> Recipe:
    settings = job.parameters.settings
    parameters = booster_params(job.parameters) | resolve_constraints(settings, schema.names)
    parameters |= {"device": place.device, "nthread": place.threads}
    if classes is not None:
        parameters["num_class"] = classes
    early_stopping = None
    if settings.early_stopping_rounds:
        watched = job.parameters.monitored
        early_stopping = EarlyStopping(
            settings.early_stopping_rounds, watched.name, "validation", maximise=watched.maximised
        )
        log(early_stopping.describe())
    return Recipe(parameters, settings.num_round, early_stopping)
