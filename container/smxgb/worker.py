"""The worker: from a job to its artefacts. Every mode runs this one function in each of its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb import logbook
from smxgb.artifacts import MODEL_NAME, prepare_folders, stage_importance, stage_model, stage_report
from smxgb.boosting import EarlyStopping, Recipe, boost
from smxgb.environment import memory_available
from smxgb.errors import Mistakes
from smxgb.evaluation import Evaluator, evaluation_line
from smxgb.examination import examine
from smxgb.hyperparameters import DEFAULT_OBJECTIVE, booster_params
from smxgb.matrix import build_matrix
from smxgb.own_metrics import OwnMetrics
from smxgb.progress import PhaseClock, RoundClock, log
from smxgb.readers import open_reader
from smxgb.scratch import scratch_folder
from smxgb.store import keep, no_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import xgboost as xgb

    from smxgb.batch import Schema
    from smxgb.boosting import Trained
    from smxgb.evaluation import Values
    from smxgb.examination import Examined
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
    with scratch_folder(job.parameters.settings.spool_dir, job.paths.base, link) as scratch:
        with clock.phase("load"):
            loaded = _load(job, place, scratch)
        examined = _examine(job, loaded)
        trained = _train(job, place, loaded, examined, scratch=scratch, clock=clock, link=link)
        results = _save(job, loaded, trained, clock)
    log(clock.summary())
    link.succeeded(logbook.closing_line(trained, job.paths.model / MODEL_NAME), results)


def _save(job: Job, loaded: Loaded, trained: Trained, clock: PhaseClock) -> list[Path]:
    """Write the artefacts beside their places; return where."""
    folder = job.paths.output_data
    with clock.phase("save"):
        linear = job.parameters.settings.booster == "gblinear"
        importance = stage_importance(trained.booster, loaded.schema, folder, linear=linear)
        model = stage_model(trained.booster, loaded.schema, job.paths.model)
    summaries = {name: kept.summary for name, kept in loaded.channels.items()}
    report = stage_report(logbook.final_report(job, summaries, loaded.schema, trained, clock), folder)
    return [importance, report, model]


def _train(
    job: Job, place: Place, loaded: Loaded, examined: Examined, *, scratch: Path, clock: PhaseClock, link: Link
) -> Trained:
    """Build the matrices and train on them; they end with this call, before their files in `scratch` do."""
    with clock.phase("matrix"):
        matrices = _matrices(job, place, loaded, examined.plan, scratch)
    with clock.phase("train"):
        evaluator = _evaluator(job, loaded, examined.classes, matrices)
        recipe = _recipe(job, place, examined)
        return boost(recipe, matrices["train"], evaluator, _after_round(job, link))


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


def _examine(job: Job, loaded: Loaded) -> Examined:
    names = loaded.schema.names
    examined = examine(
        job.parameters,
        names,
        _labels(loaded),
        {name: kept.summary.shape(len(names)) for name, kept in loaded.channels.items()},
        rows=loaded.channels["train"].rows,
        available=memory_available(),
    )
    for line in examined.describe():
        log(line)
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
        log(early_stopping.describe())
    return Recipe(parameters, settings.num_round, early_stopping)
