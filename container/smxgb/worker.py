"""The worker: from a job to its artefacts. Every mode runs this one function in each of its workers."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb import logbook
from smxgb.artifacts import prepare_folders, publish_model, stage_model, write_importance, write_report
from smxgb.boosting import EarlyStopping, Recipe, boost
from smxgb.environment import free_bytes, memory_available
from smxgb.errors import Mistakes, UserError
from smxgb.evaluation import Evaluator, evaluation_line
from smxgb.hyperparameters import DEFAULT_OBJECTIVE, booster_params, resolve_constraints
from smxgb.labels import check_all_rows, check_labels
from smxgb.matrix import build_matrix
from smxgb.own_metrics import OwnMetrics
from smxgb.plan import make_plan
from smxgb.progress import PhaseClock, RoundClock, log
from smxgb.readers import open_reader
from smxgb.store import keep, no_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import xgboost as xgb

    from smxgb.batch import Schema
    from smxgb.boosting import Trained
    from smxgb.evaluation import Values
    from smxgb.job import Device, Job
    from smxgb.plan import Plan
    from smxgb.progress import Link
    from smxgb.store import Labels, Stored


@dataclass(frozen=True)
class Place:
    """A worker's place: its rank among `world_size` workers, and the device and threads it may use."""

    rank: int
    world_size: int
    device: Device
    threads: int


@dataclass(frozen=True)
class Loaded:
    """The rows of each channel, ready to be read again and again, and the features they have in common."""

    schema: Schema
    channels: Mapping[str, Stored]


def run(job: Job, place: Place, link: Link) -> None:
    """Do this worker's part of the job, from the channels to the artefacts.

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
            loaded = _load(job, place, scratch)
        trained = _train(job, place, loaded, scratch=scratch, clock=clock, link=link)
        with clock.phase("save"):
            write_importance(
                trained.booster,
                loaded.schema,
                job.paths.output_data,
                linear=job.parameters.settings.booster == "gblinear",
            )
            staged = stage_model(trained.booster, loaded.schema, job.paths.model)
    summaries = {name: kept.summary for name, kept in loaded.channels.items()}
    write_report(logbook.final_report(job, summaries, loaded.schema, trained, clock), job.paths.output_data)
    path = publish_model(staged)
    log(clock.summary())
    link.succeeded(logbook.closing_line(trained, path))


def _train(
    job: Job, place: Place, loaded: Loaded, *, scratch: Path, clock: PhaseClock, link: Link
) -> Trained:
    """Build the matrices and train on them; they end with this call, before their files in `scratch` do."""
    classes = check_labels(
        job.parameters, _labels(loaded), loaded.channels["train"].rows, loaded.schema.layout
    )
    check_all_rows(job.parameters, {name: kept.summary for name, kept in loaded.channels.items()}, classes)
    plan = _plan(job, loaded)
    with clock.phase("matrix"):
        matrices = _matrices(job, place, loaded, plan, scratch)
    with clock.phase("train"):
        evaluator = _evaluator(job, loaded, classes, matrices)
        recipe = _recipe(job, place, loaded.schema, classes)
        return boost(recipe, matrices["train"], evaluator, _after_round(job, link))


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


def _load(job: Job, place: Place, scratch: Path) -> Loaded:
    first = open_reader(job.channels.train, job.data, threads=place.threads, like=None)
    schema = first.schema()
    mistakes = Mistakes()
    channels: dict[str, Stored] = {}
    for channel in job.channels:
        with mistakes.collect():
            reader = (
                first
                if channel is job.channels.train
                else open_reader(channel, job.data, threads=place.threads, like=schema)
            )
            kept = keep(reader, schema, scratch, channel.name)
            channels[channel.name] = kept
            if not kept.rows:
                mistakes.add(no_rows(channel.name, kept.summary))
    mistakes.raise_any()
    for name, kept in channels.items():
        columns = f" and {len(schema.names)} columns" if name == "train" else ""
        log(f"{name.capitalize()} matrix has {kept.rows} rows{columns}")
        if kept.summary.dropped:
            log(f"Channel {name}: {kept.summary.dropped} rows without a valid label were dropped.")
    return Loaded(schema, channels)


def _labels(loaded: Loaded) -> dict[str, Labels]:
    return {name: kept.summary.label for name, kept in loaded.channels.items() if kept.summary.label}


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
    job: Job, loaded: Loaded, classes: int | None, matrices: Mapping[str, xgb.DMatrix]
) -> Evaluator:
    settings, metrics = job.parameters.settings, job.parameters.metrics
    labels = loaded.channels["train"].summary.label
    own = OwnMetrics(
        settings.objective or DEFAULT_OBJECTIVE,
        [metric.base for metric in metrics if metric.own],
        classes or 2,
        centre=(labels.lowest + labels.highest) / 2 if labels else 0.0,
    )
    seen = {name: matrix for name, matrix in matrices.items() if name != "train" or settings.eval_train}
    return Evaluator(metrics, own, seen)


def _after_round(job: Job, link: Link) -> Callable[[int, Values], None]:
    rounds = RoundClock(link, job.parameters.settings.num_round)

    def after_round(number: int, values: Values) -> None:
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
