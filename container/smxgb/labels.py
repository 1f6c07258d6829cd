"""Labels: what an objective allows them to be, checked before training with the labels that were found.

XGBoost checks some of it after the matrix is built, in words about other things (a binary label of 2 is
reported as a wrong base_score), and some of it not at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes, UserError
from smxgb.hyperparameters import DEFAULT_OBJECTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.hyperparameters import Hyperparameters
    from smxgb.store import Labels, Summary


@dataclass(frozen=True)
class Domain:
    """The labels that an objective takes: a test of a channel's labels, and the rule in words."""

    holds: Callable[[Labels], bool]
    rule: str


_PROBABILITY = Domain(lambda labels: labels.lowest >= 0 and labels.highest <= 1, "a number from 0 to 1")
_BINARY = Domain(lambda labels: set(labels.different or [math.nan]) <= {0.0, 1.0}, "0 or 1")
_CLASS = Domain(lambda labels: labels.whole and labels.lowest >= 0, "a whole number from 0 to num_class - 1")
_GRADE = Domain(lambda labels: labels.lowest >= 0, "a grade >= 0")
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
    "rank:ndcg": _GRADE,
    "rank:pairwise": _GRADE,
    "rank:map": _BINARY,
}


def check_labels(settings: Hyperparameters, channels: Mapping[str, Labels]) -> int | None:
    """Return the number of classes of a multi-class objective, None for any other.

    `channels` has the labels of each channel that has rows. `num_class` is one more than the largest label if
    the job does not set it.

    Raises:
        UserError: If a channel has labels that the objective does not take.
    """
    objective = settings.objective or DEFAULT_OBJECTIVE
    mistakes = Mistakes()
    domain = DOMAINS.get(objective)
    for channel, labels in channels.items():
        if domain and not domain.holds(labels):
            mistakes.add(
                f"channel {channel} has the labels {_shown(labels)}, but for objective={objective} a label "
                "is "
                f"{domain.rule}: recode the labels, or choose another objective."
            )
    mistakes.raise_any()
    if not objective.startswith("multi:"):
        return None
    highest = {channel: int(labels.highest) for channel, labels in channels.items()}
    classes = settings.num_class or max(2, 1 + max(highest.values()))
    for channel, label in highest.items():
        if label >= classes:
            mistakes.add(
                f"channel {channel} has the label {label}, but num_class={classes} allows 0 to "
                f"{classes - 1}: set num_class={label + 1}, or leave it out to have the classes counted."
            )
    mistakes.raise_any()
    return classes


def ranks(settings: Hyperparameters) -> bool:
    """Return whether the objective ranks the rows of a group."""
    return (settings.objective or DEFAULT_OBJECTIVE).startswith("rank:")


def check_groups(settings: Hyperparameters, channels: Mapping[str, Summary]) -> None:
    """Raise UserError if the objective ranks groups and the rows of a channel have none."""
    lacking = [name for name, summary in channels.items() if summary.rows and summary.groups is None]
    if ranks(settings) and lacking:
        raise UserError(
            f"objective={settings.objective} ranks the rows of each group, and those of channel {lacking[0]} "
            "have no "
            "group: name its column in group_column, or write qid: behind the labels of libsvm files."
        )


def _shown(labels: Labels) -> str:
    if labels.different:
        return ", ".join(f"{label:g}" for label in labels.different)
    return f"from {labels.lowest:g} to {labels.highest:g}"
