"""The metrics: which there are, which way they improve, and which objective each goes with."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, get_args

from smxgb.errors import UserError
from smxgb.literals import number_of
from smxgb.settings.objectives import OBJECTIVES, kind_of
from smxgb.wording import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smxgb.settings.objectives import Objective

Parameter = Literal["k", "threshold", "power", "ratio"]


@dataclass(frozen=True)
class Entry:
    """A row of the table of metrics.

    `fits` holds the kinds of objective, or the objectives, that the metric is defined for. `parameter` is
    what may stand after an @; `required` says that it must. `needs` is the setting without which the metric
    is undefined. `shared` says that several workers can compute it, each from its own rows.
    """

    maximise: bool
    fits: frozenset[str]
    source: Literal["xgboost", "container"] = "xgboost"
    parameter: Parameter | None = None
    required: bool = False
    needs: Literal["quantile_alpha", "expectile_alpha"] | None = None
    shared: bool = True


_EACH = frozenset({"regression", "binary", "multi-class", "ranking", "survival"})
_ONE_OUTPUT = _EACH - {"multi-class"}
_MULTI = frozenset({"multi-class"})
_CLASSES = frozenset({"binary", "multi-class"})
_BINARY = frozenset({"binary"})
_BOUNDS = frozenset({"survival:aft"})


def _loss(fits: frozenset[str] = _ONE_OUTPUT, parameter: Parameter | None = None) -> Entry:
    return Entry(maximise=False, fits=fits, parameter=parameter)


def _score(fits: frozenset[str], parameter: Parameter | None = None) -> Entry:
    return Entry(maximise=True, fits=fits, parameter=parameter)


def _own(fits: frozenset[str], *, maximise: bool = True) -> Entry:
    return Entry(maximise=maximise, fits=fits, source="container")


type Curve = Literal["auc", "aucpr"]
CURVES: frozenset[Curve] = frozenset(get_args(Curve.__value__))
"""Metrics that are areas under a curve: they rank the rows of all classes against each other."""

METRICS: Mapping[str, Entry] = {
    "rmse": _loss(),
    "rmsle": _loss(),
    "mae": _loss(),
    "mape": _loss(),
    "mphe": _loss(),
    "logloss": _loss(),
    "error": _loss(parameter="threshold"),
    "merror": _loss(_MULTI),
    "mlogloss": _loss(_MULTI),
    "poisson-nloglik": _loss(),
    "gamma-nloglik": _loss(),
    "gamma-deviance": _loss(),
    "tweedie-nloglik": _loss(parameter="power"),
    "quantile": Entry(maximise=False, fits=_ONE_OUTPUT, needs="quantile_alpha"),
    "expectile": Entry(maximise=False, fits=_ONE_OUTPUT, needs="expectile_alpha"),
    "cox-nloglik": Entry(maximise=False, fits=_ONE_OUTPUT, shared=False),
    "aft-nloglik": _loss(_BOUNDS),
    "interval-regression-accuracy": _score(_BOUNDS),
    "auc": _score(_EACH),
    "aucpr": _score(_EACH),
    "pre": _score(_ONE_OUTPUT, "k"),
    "ndcg": _score(_ONE_OUTPUT, "k"),
    "map": _score(_ONE_OUTPUT, "k"),
    "ams": Entry(maximise=True, fits=_BINARY, parameter="ratio", required=True, shared=False),
    "accuracy": _own(_CLASSES),
    "balanced_accuracy": _own(_CLASSES),
    "f1": _own(_CLASSES),
    "f1_binary": _own(_BINARY),
    "f1_macro": _own(_CLASSES),
    "precision": _own(_BINARY),
    "precision_macro": _own(_CLASSES),
    "precision_micro": _own(_CLASSES),
    "recall": _own(_BINARY),
    "recall_macro": _own(_CLASSES),
    "recall_micro": _own(_CLASSES),
    "r2": _own(frozenset({"regression", "binary"})),
    "mse": _own(frozenset({"regression", "binary"}), maximise=False),
}
"""Every metric of XGBoost 3.4.1, and those that this container computes itself."""

OF_BOUNDS = tuple(name for name, entry in METRICS.items() if entry.fits == _BOUNDS)
"""The metrics that need no label, but its lower and upper bound."""

_FORM = re.compile(r"(?P<base>[a-z0-9_-]*?[a-z0-9])(?:@(?P<parameter>[^@]*?))?(?P<dash>-?)")

_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "error": ("merror",),
    "merror": ("error",),
    "logloss": ("mlogloss",),
    "mlogloss": ("logloss",),
    "precision": ("precision_macro", "precision_micro"),
    "recall": ("recall_macro", "recall_micro"),
    "f1_binary": ("f1_macro",),
    **dict.fromkeys(("rmse", "mae", "mse"), ("mlogloss", "merror")),
    **dict.fromkeys(("accuracy", "f1", "f1_macro", "balanced_accuracy", "r2"), ("rmse", "merror")),
}
"""What to use instead, where a metric does not fit the objective."""

_ERROR_THRESHOLD = 0.5
_TWEEDIE_POWER = 1.5
_TWEEDIE_LIMIT = 2
RANKING_CUT = 32
"""XGBoost's default of `lambdarank_num_pair_per_sample`; its ranking metrics look at as many ranks."""

_PARAMETER_TEXTS: Mapping[Parameter, str] = {
    "k": "a whole number, 1 or more, as in {}@10",
    "threshold": "a number, as in {}@0.7",
    "power": "a number from 1 up to, but not including, 2, as in {}@1.5",
    "ratio": "a number, 0 or more, as in {}@0.15",
}


@dataclass(frozen=True)
class Metric:
    """One metric of a job.

    `name` is what the log shows, as the user wrote it. `upstream` is the name that XGBoost takes. `own` says
    that the container computes the metric; `upstream` then has no meaning.
    """

    name: str
    base: str
    upstream: str
    own: bool = False

    @property
    def entry(self) -> Entry:
        """The metric's row of the table."""
        return METRICS[self.base]

    @property
    def maximised(self) -> bool:
        """Whether a larger value is better."""
        return self.entry.maximise


def parse_metric(text: str, *, tweedie_power: float | None = None) -> Metric:
    """Return the metric that `text` names: `auc`, `error@0.7`, `ndcg@10`, `map-`, `map@5-`.

    A trailing dash scores a ranking query without relevant rows 0 instead of 1 (XGBoost's `eval_metric`).
    XGBoost takes `tweedie-nloglik` with its power only, so a missing one is filled in from the objective's.

    Raises UserError with the nearest name if there is no such metric, or its parameter is not allowed.
    """
    name = text.strip().lower()
    form = _FORM.fullmatch(name)
    base = form["base"] if form else name.partition("@")[0].rstrip("-")
    if base not in METRICS:
        raise UserError(f"there is no metric {_shown(text)}: {_nearest(base)}")
    entry = METRICS[base]
    if form is None:
        alternative = f", or {_parameter_text(base)}" if entry.parameter else ""
        raise UserError(f"{_shown(text)} is not a metric: write {base} alone{alternative}.")
    if form["dash"] and entry.parameter != "k":
        raise UserError(
            f"metric {_shown(text)}: a trailing dash goes with ndcg, map and pre only; write {base}."
        )
    value = form["parameter"]
    if value is None and entry.required:
        raise UserError(f"metric {base} needs a parameter: {_parameter_text(base)}.")
    if value is not None:
        value = _checked_parameter(base, value, text)
    elif base == "tweedie-nloglik":
        value = f"{_TWEEDIE_POWER if tweedie_power is None else tweedie_power:g}"
    upstream = base + (f"@{value}" if value else "") + form["dash"]
    return Metric(name=name, base=base, upstream=upstream, own=entry.source == "container")


def right_for(metric: Metric, objective: Objective) -> Metric:
    """Return the metric as it has to be computed for an objective.

    binary:logitraw predicts log-odds. XGBoost's `error` would compare them with the threshold of a
    probability, and its `logloss` would take their logarithm.
    """
    if objective != "binary:logitraw":
        return metric
    if metric.upstream == "error":
        return replace(metric, upstream="error@0")
    return replace(metric, own=True) if metric.base == "logloss" else metric


def default_metric(
    objective: Objective, *, tweedie_power: float | None = None, ranking_cut: int | None = RANKING_CUT
) -> Metric:
    """Return the metric that XGBoost computes for an objective when none is asked for.

    `ranking_cut` is the number of ranks that ranking metrics look at, None for all of them.
    """
    text = OBJECTIVES[objective].metric
    if kind_of(objective) == "ranking" and ranking_cut is not None:
        text = f"{text}@{ranking_cut}"
    metric = parse_metric(text, tweedie_power=tweedie_power)
    return right_for(replace(metric, name=metric.upstream), objective)


def unfit_reason(metric: Metric, objective: Objective) -> str | None:
    """Return why a metric is undefined for an objective's predictions, and a cure; None if it is defined."""
    kind = kind_of(objective)
    fits = metric.entry.fits
    if kind in fits or objective in fits:
        return None
    others = [name for name in _ALTERNATIVES.get(metric.base, ()) if kind in METRICS[name].fits]
    cure = f"use {' or '.join(others)}" if others else "leave it out"
    return f"metric {metric.name} is for {_listed(sorted(fits))}, not for {objective}: {cure}."


def merged_metrics(asked: Iterable[Metric], tuning: Metric | None, default: Metric) -> tuple[Metric, ...]:
    """Return the metrics of a job in the order of its log.

    The user's metrics come first, in their order and each once, then the tuning metric. Without either there
    is the default alone. `error` and `error@0.5` are one metric with two names, and both are kept: a tuning
    job looks for the name that it was given.
    """
    unique: dict[str, Metric] = {}
    for metric in (*asked, *([tuning] if tuning else [])):
        unique.setdefault(metric.name, metric)
    return tuple(unique.values()) or (default,)


def monitored_metric(asked: Sequence[Metric], tuning: Metric | None, default: Metric) -> Metric:
    """Return what early stopping watches: the last metric asked for, else the tuned one, else the default.

    A metric that is asked for twice counts at its first place, as in the log.
    """
    return merged_metrics(asked, None, default)[-1] if asked else tuning or default


MOST_DEFINITIONS = 40
"""The most metric definitions that SageMaker takes for a job (API reference, AlgorithmSpecification)."""


def tuning_regex(data_set: Literal["train", "validation"], metric: str) -> str:
    r"""Return the regular expression with which SageMaker's tuner finds a metric in the log.

    In the log a tab stands before each value, and CloudWatch shows it as #011, which is not white space. So
    the characters of a value are listed, where AWS's own definitions have `(\S+)`.
    """
    return rf".*\[[0-9]+\].*{data_set}-{re.escape(metric)}:(-?[0-9.]+)"


def metric_definitions() -> list[dict[str, str]]:
    """Return each metric of each data set in the form of SageMaker's `MetricDefinitions`.

    There are more of them than a job may have (`MOST_DEFINITIONS`): give a job those that it logs.
    """
    data_sets: tuple[Literal["train", "validation"], ...] = ("train", "validation")
    return [
        {"Name": f"{data_set}:{name}", "Regex": tuning_regex(data_set, name)}
        for data_set in data_sets
        for name, entry in METRICS.items()
        if not entry.required
    ]


def _checked_parameter(base: str, value: str, text: str) -> str:
    parameter = METRICS[base].parameter
    if parameter is None:
        raise UserError(f"metric {_shown(text)}: {base} takes no parameter; write {base}.")
    number = number_of(value)
    if number is None or not _is_allowed(parameter, number, value):
        allowed_text = _PARAMETER_TEXTS[parameter].format(base)
        raise UserError(f"metric {_shown(text)} is not allowed: after @ stands {allowed_text}.")
    if parameter == "k":
        return str(number)
    # XGBoost reports `error@0.5` under the name `error`, its default.
    return "" if parameter == "threshold" and number == _ERROR_THRESHOLD else f"{number:g}"


def _is_allowed(parameter: Parameter, number: float, text: str) -> bool:
    match parameter:
        case "k":
            return text.isdecimal() and 1 <= number < 2**31
        case "threshold":
            return abs(number) < 2**100
        case "power":
            return 1 <= number < _TWEEDIE_LIMIT
        case "ratio":
            return number >= 0


def _parameter_text(base: str) -> str:
    parameter = METRICS[base].parameter
    return _PARAMETER_TEXTS[parameter].format(base) if parameter else "none"


def _nearest(base: str) -> str:
    near = get_close_matches(base, METRICS, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(METRICS)}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _shown(text: str) -> str:
    return repr(short(text))
