"""Labels: what an objective allows them to be, checked before training with the labels that were found.

XGBoost checks some of it after the matrix is built, in words about other things (a binary label of 2 is
reported as a wrong base_score), and some of it not at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes
from smxgb.hyperparameters import DEFAULT_OBJECTIVE
from smxgb.metrics import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smxgb.hyperparameters import Hyperparameters, Parsed
    from smxgb.store import Labels


@dataclass(frozen=True)
class Domain:
    """The labels that an objective takes: a test of a channel's labels, and the rule in words."""

    holds: Callable[[Labels], bool]
    rule: str


HIGHEST_GRADE = 31
"""The gain of a grade is 2^grade - 1, which XGBoost keeps in 32 bits."""

_PROBABILITY = Domain(lambda labels: labels.lowest >= 0 and labels.highest <= 1, "a number from 0 to 1")
_BINARY = Domain(lambda labels: set(labels.different or [math.nan]) <= {0.0, 1.0}, "0 or 1")
_CLASS = Domain(lambda labels: labels.whole and labels.lowest >= 0, "a whole number from 0 to num_class - 1")
_GRADE = Domain(lambda labels: labels.whole and labels.lowest >= 0, "a grade, a whole number >= 0")
_GAINED = Domain(
    lambda labels: labels.whole and 0 <= labels.lowest <= labels.highest <= HIGHEST_GRADE,
    "a grade, a whole number from 0 to 31 (any, with ndcg_exp_gain=false)",
)
_NOT_NEGATIVE = Domain(lambda labels: labels.lowest >= 0, "a number >= 0")
_POSITIVE = Domain(lambda labels: labels.lowest > 0, "a number > 0")
_ABOVE_MINUS_1 = Domain(lambda labels: labels.lowest > -1, "a number > -1")

DOMAINS: Mapping[str, Domain] = {
    "binary:logistic": _PROBABILITY,
    "binary:logitraw": _PROBABILITY,
    "binary:hinge": _BINARY,
    "reg:logistic": _PROBABILITY,
    "multi:softmax": _CLASS,
    "multi:softprob": _CLASS,
    "count:poisson": _NOT_NEGATIVE,
    "reg:gamma": _POSITIVE,
    "reg:tweedie": _NOT_NEGATIVE,
    "reg:squaredlogerror": _ABOVE_MINUS_1,
    "rank:ndcg": _GAINED,
    "rank:pairwise": Domain(lambda labels: labels.lowest >= 0, "a grade >= 0"),
    "rank:map": _BINARY,
}
"""The labels that each objective takes; those that are not here take any number."""

_RANKED: Mapping[str, Domain] = {"map": _BINARY, "pre": _BINARY}
_SCORED: Mapping[str, Domain] = {"auc": _PROBABILITY, "aucpr": _PROBABILITY}


def check_labels(parameters: Parsed, channels: Mapping[str, Labels], rows: int) -> int | None:
    """Return the number of classes of a multi-class objective, None for any other.

    `channels` has the labels of each channel that has rows; training has `rows`. `num_class` is one more than
    the largest label if the job does not set it.

    Raises:
        UserError: If a channel has labels that the objective or a metric does not take.
    """
    mistakes = Mistakes()
    for channel, labels in channels.items():
        for owner, cure, domain in _domains(parameters):
            if not domain.holds(labels):
                mistakes.add(
                    f"channel {channel} has the labels {_shown(labels)}, but for {owner} a label is "
                    f"{domain.rule}: recode the labels, or {cure}."
                )
                break
    mistakes.raise_any()
    objective = parameters.settings.objective or DEFAULT_OBJECTIVE
    return _classes(parameters.settings, channels, rows) if kind_of(objective) == "multi-class" else None


def _domains(parameters: Parsed) -> Iterator[tuple[str, str, Domain]]:
    """Yield what limits the labels, what else could be done about it, and the limit."""
    objective = parameters.settings.objective or DEFAULT_OBJECTIVE
    graded = _GRADE if parameters.settings.ndcg_exp_gain is False else _GAINED
    domain = DOMAINS.get(objective)
    if domain is _GAINED:
        domain = graded
    if domain:
        yield f"objective={objective}", "choose another objective", domain
    kind = kind_of(objective)
    for metric in parameters.metrics:
        domain = graded if metric.base == "ndcg" else _RANKED.get(metric.base)
        if kind not in {"ranking", "multi-class"}:
            domain = domain or _SCORED.get(metric.base)
        if metric.own and kind == "binary" and "regression" not in metric.entry.fits:
            domain = _BINARY
        if domain:
            yield f"metric {metric.name}", "set eval_metric to others", domain


def _classes(settings: Hyperparameters, channels: Mapping[str, Labels], rows: int) -> int:
    highest = {channel: int(labels.highest) for channel, labels in channels.items()}
    classes = settings.num_class or max(2, 1 + max(highest.values()))
    mistakes = Mistakes()
    for channel, label in highest.items():
        if label >= classes:
            mistakes.add(
                f"channel {channel} has the label {label}, but num_class={classes} allows 0 to "
                f"{classes - 1}: set num_class={label + 1}, or leave it out to have the classes counted."
            )
        elif label >= max(rows, 2) and not settings.num_class:
            mistakes.add(
                f"channel {channel} has the label {label}, which makes {classes:,} classes of {rows:,} rows: "
                "number the classes 0, 1, 2 and so on."
            )
    mistakes.raise_any()
    return classes


def _shown(labels: Labels) -> str:
    if labels.different:
        return ", ".join(f"{label:g}" for label in labels.different)
    return f"from {labels.lowest:g} to {labels.highest:g}"
