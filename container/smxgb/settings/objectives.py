"""The objectives: what each predicts, and the labels, the first prediction and the metric that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from smxgb.settings.label_domains import (
    ABOVE_MINUS_1,
    BINARY,
    CLASS,
    GAINED,
    GRADE,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.settings.label_domains import Domain

Kind = Literal["regression", "binary", "multi-class", "ranking", "survival"]

Objective = Literal[
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:logistic",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:expectileerror",
    "reg:gamma",
    "reg:tweedie",
    "count:poisson",
    "binary:logistic",
    "binary:logitraw",
    "binary:hinge",
    "multi:softmax",
    "multi:softprob",
    "rank:pairwise",
    "rank:ndcg",
    "rank:map",
    "survival:aft",
    "survival:cox",
]
"""The objectives of XGBoost 3.4.1, but for `reg:linear`, its old name of `reg:squarederror`."""


@dataclass(frozen=True)
class Entry:
    """A row of the table of objectives.

    `metric` is what XGBoost computes when none is asked for. `labels` are those that the objective takes,
    None for any number. `base_score` has the two bounds of the prediction before the first tree. `alphas`
    names a setting: the model has one output for each of its numbers. With `needs_some`, XGBoost's model is
    nan, without an error, unless some label is above 0; the text says what such a label means.
    """

    metric: str
    labels: Domain | None = None
    base_score: tuple[float, float] = (-inf, inf)
    alphas: Literal["quantile_alpha", "expectile_alpha"] | None = None
    needs_some: str | None = None


OBJECTIVES: Mapping[Objective, Entry] = {
    "reg:squarederror": Entry("rmse"),
    "reg:squaredlogerror": Entry("rmsle", ABOVE_MINUS_1),
    "reg:logistic": Entry("rmse", PROBABILITY, (0, 1)),
    "reg:pseudohubererror": Entry("mphe"),
    "reg:absoluteerror": Entry("mae"),
    "reg:quantileerror": Entry("quantile", alphas="quantile_alpha"),
    "reg:expectileerror": Entry("expectile", alphas="expectile_alpha"),
    "reg:gamma": Entry("gamma-deviance", POSITIVE, (0, inf)),
    "reg:tweedie": Entry("tweedie-nloglik", NOT_NEGATIVE, (0, inf), needs_some="some amount above 0"),
    "count:poisson": Entry("poisson-nloglik", NOT_NEGATIVE, (0, inf)),
    "binary:logistic": Entry("logloss", PROBABILITY, (0, 1)),
    "binary:logitraw": Entry("logloss", PROBABILITY),
    "binary:hinge": Entry("error", BINARY),
    "multi:softmax": Entry("mlogloss", CLASS),
    "multi:softprob": Entry("mlogloss", CLASS),
    "rank:pairwise": Entry("ndcg", GRADE),
    "rank:ndcg": Entry("ndcg", GAINED),
    "rank:map": Entry("map", BINARY),
    "survival:aft": Entry("aft-nloglik"),
    "survival:cox": Entry(
        "cox-nloglik",
        base_score=(0, inf),
        needs_some="a time of an event, which is above 0 (a negative one says that the event was not seen)",
    ),
}
"""Every objective of XGBoost 3.4.1."""

_KINDS: Mapping[str, Kind] = {
    "reg": "regression",
    "count": "regression",
    "binary": "binary",
    "multi": "multi-class",
    "rank": "ranking",
    "survival": "survival",
}


def kind_of(objective: Objective) -> Kind:
    """Return what an objective predicts."""
    return _KINDS[objective.partition(":")[0]]
