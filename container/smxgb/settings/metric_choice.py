"""Which metrics a job logs, and which of them early stopping watches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.settings.metrics import (
    CURVES,
    OF_BOUNDS,
    RANKING_CUT,
    Metric,
    default_metric,
    merged_metrics,
    monitored_metric,
    parse_metric,
    right_for,
    unfit_reason,
)
from smxgb.settings.objectives import OBJECTIVES, kind_of

if TYPE_CHECKING:
    from smxgb.errors import Mistakes
    from smxgb.settings.hyperparameters import Hyperparameters

_DATA_SET = re.compile(r"\s*(train|validation)[:-]", re.IGNORECASE)


@dataclass(frozen=True)
class MetricChoice:
    """The metrics of a job in the order of its log, the one that early stopping watches, and log lines."""

    metrics: tuple[Metric, ...]
    monitored: Metric
    notes: tuple[str, ...]


def choose_metrics(settings: Hyperparameters, mistakes: Mistakes, *, objective_known: bool) -> MetricChoice:
    """Return what a job evaluates after each round; what is wrong with it is noted in `mistakes`.

    `early_stopping_metric` joins the list if it is not in it. Without `objective_known`, because the
    job's objective is a mistake, metrics are not compared with it.
    """
    default = _default(settings)

    def read(name: str, text: str) -> Metric | None:
        try:
            metric = parse_metric(text, tweedie_power=settings.tweedie_variance_power)
        except UserError as error:
            mistakes.add(f"{name}: {error.mistakes[0]}")
            return None
        reason = _unfit(metric, settings) if objective_known else None
        if reason:
            mistakes.add(f"{name}: {reason}")
        return right_for(metric, settings.objective)

    asked = [metric for text in settings.eval_metric if (metric := read("eval_metric", text))]
    tuning, notes = None, []
    if settings.tuning_metric:
        if _DATA_SET.match(settings.tuning_metric) or _is_metric(settings.tuning_metric):
            tuning = read("_tuning_objective_metric", _DATA_SET.sub("", settings.tuning_metric))
        else:
            # A tuner with metric definitions of its own may give any name to what it reads from the log.
            notes.append(
                f"_tuning_objective_metric={settings.tuning_metric!r} is no metric of this container: "
                "the tuner's own metric definition must find it in the log."
            )
    _check_data_sets(settings, mistakes)
    watched = settings.early_stopping_metric
    monitored = read("early_stopping_metric", _DATA_SET.sub("", watched)) if watched else None
    logged = [*asked, *([tuning] if tuning else [])]
    return MetricChoice(
        merged_metrics(logged, monitored, default),
        monitored or monitored_metric(asked, tuning, default),
        tuple(notes),
    )


def _check_data_sets(settings: Hyperparameters, mistakes: Mistakes) -> None:
    """Note metrics of the training rows that are not logged, or that early stopping can't watch."""
    if not settings.eval_train and tunes_on_train(settings):
        mistakes.add(
            f"the tuning job optimises {settings.tuning_metric!r}, and eval_train=false leaves it out of "
            "the log: leave out eval_train, or tune a metric of the validation channel."
        )
    watched = settings.early_stopping_metric
    if watched and _on_train(watched):
        bare = _DATA_SET.sub("", watched)
        mistakes.add(
            f"early_stopping_metric={watched!r} is a metric of the training rows, and early stopping watches "
            f"the validation channel: set {bare}."
        )


def tunes_on_train(settings: Hyperparameters) -> bool:
    """Return whether automatic tuning optimises a metric of the training rows."""
    return settings.tuning_metric is not None and _on_train(settings.tuning_metric)


def _on_train(text: str) -> bool:
    data_set = _DATA_SET.match(text)
    return data_set is not None and data_set[1].lower() == "train"


def _default(settings: Hyperparameters) -> Metric:
    cut = settings.lambdarank_num_pair_per_sample or RANKING_CUT
    return default_metric(
        settings.objective,
        tweedie_power=settings.tweedie_variance_power,
        ranking_cut=None if settings.lambdarank_pair_method == "mean" else cut,
    )


def _unfit(metric: Metric, settings: Hyperparameters) -> str | None:
    needed = metric.entry.needs
    if needed and not getattr(settings, needed):
        return f"metric {metric.name} needs {needed}: set it, or leave the metric out."
    of_classes = kind_of(settings.objective) == "multi-class"
    entry = OBJECTIVES[settings.objective]
    if not of_classes and settings.outputs != 1 and metric.base != entry.metric:
        return (
            f"metric {metric.name} is not for several predictions of a row ({entry.alphas}): use "
            f"{entry.metric}."
        )
    if of_classes and settings.group_column is not None and metric.base in CURVES:
        return f"metric {metric.name} is not for classes in groups: leave out group_column, or the metric."
    reason = unfit_reason(metric, settings.objective)
    unlabelled = settings.objective == "survival:aft" and settings.label_column is None
    if not reason and unlabelled and metric.base not in OF_BOUNDS:
        return (
            f"metric {metric.name} needs labels, and survival:aft has bounds: use {' or '.join(OF_BOUNDS)}."
        )
    return reason


def _is_metric(text: str) -> bool:
    try:
        parse_metric(text)
    except UserError:
        return False
    return True
