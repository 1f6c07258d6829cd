"""Boosting: the loop over rounds, with its evaluation lines and early stopping.

The loop is not `xgboost.train`, because it numbers its rounds itself: so training that is continued from a
saved model is equal to training in one go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import xgboost as xgb

from smxgb.log import log
from smxgb.training.model import can_be_cut, cut, drops_trees, with_scaled_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.training.evaluation import Evaluator, Values

type History = dict[str, dict[str, list[float]]]
"""Data set -> metric -> its value after each round."""


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `patience` rounds without a better value of `metric` on the data set `data`."""

    patience: int
    metric: str
    data: str
    maximise: bool

    def describe(self) -> str:
        """Return the line of the log that says what is watched."""
        direction = "higher" if self.maximise else "lower"
        return (
            f"Early stopping watches {self.data}-{self.metric} ({direction} is better) and stops after "
            f"{self.patience} round{'s' if self.patience > 1 else ''} without a better value; the model is "
            "that of the best round."
        )

    def better(self, value: float, than: float | None) -> bool:
        """Return whether `value` beats the best so far. An undefined value (nan) never does."""
        if math.isnan(value):
            return False
        return than is None or math.isnan(than) or (value > than if self.maximise else value < than)


@dataclass(frozen=True)
class Recipe:
    """What to train: XGBoost's parameters, the total of rounds, when to stop early."""

    parameters: Mapping[str, object]
    rounds: int
    early_stopping: EarlyStopping | None = None


@dataclass
class Trained:
    """A trained booster; with early stopping that of the best round.

    `rounds` is the number of rounds that were trained. `best_round` counts from 0; it is None without early
    stopping, and if the monitored metric had no value in any round. `monitored` is the data set and the
    metric that told the best round, as the log writes them.
    """

    booster: xgb.Booster
    rounds: int = 0
    history: History = field(default_factory=dict)
    best_round: int | None = None
    best_score: float | None = None
    monitored: str | None = None


def boost(
    recipe: Recipe, train: xgb.DMatrix, evaluator: Evaluator, after_round: Callable[[int, Values], None]
) -> Trained:
    """Train and return the booster.

    Args:
        recipe: What to train.
        train: The training matrix.
        evaluator: Evaluates the booster after each round.
        after_round: Called with the number of each round and its values.
    """
    parameters = [*recipe.parameters.items(), *evaluator.parameters]
    booster = xgb.Booster(parameters, [train, *evaluator.matrices.values()])
    trained = Trained(booster)
    best = _BestRound(recipe.early_stopping, recipe.parameters) if recipe.early_stopping else None
    for number in range(recipe.rounds):
        booster.update(train, iteration=number)
        trained.rounds = number + 1
        values = evaluator.evaluate(booster, number)
        for (data, metric), value in values.items():
            trained.history.setdefault(data, {}).setdefault(metric, []).append(value)
        after_round(number, values)
        if best:
            best.take(number, values, booster)
            if best.is_enough(number):
                break
    if best and best.score is not None:
        trained.best_round, trained.best_score, trained.monitored = best.round, best.score, best.monitored
        trained.booster = best.model(booster)
    elif best:
        log(best.undecided)
    if drops_trees(recipe.parameters):
        trained.booster = with_scaled_leaves(trained.booster)
    return trained


class _BestRound:
    """The round with the best value of the monitored metric, and the model of that round.

    Where the model can't be cut at a round, the bytes of the best round's model are kept.
    """

    def __init__(self, rule: EarlyStopping, parameters: Mapping[str, object]) -> None:
        self._rule = rule
        self._keeps_bytes = not can_be_cut(parameters)
        self._bytes: bytearray | None = None
        self.monitored = f"{rule.data}-{rule.metric}"
        self.round = 0
        self.score: float | None = None

    def take(self, number: int, values: Values, booster: xgb.Booster) -> None:
        """Compare the values of a round with the best so far."""
        value = values[self._rule.data, self._rule.metric]
        if self._rule.better(value, self.score):
            self.round, self.score = number, value
            if self._keeps_bytes:
                self._bytes = booster.save_raw("ubj")

    def is_enough(self, number: int) -> bool:
        """Return whether the patience is used up after round `number`."""
        return self.score is not None and number - self.round >= self._rule.patience

    @property
    def undecided(self) -> str:
        """The line of the log for a metric that had no value in any round."""
        return (
            f"Early stopping had nothing to go by: {self.monitored} was undefined (nan) in every round. The "
            "model is that of the last round."
        )

    def model(self, booster: xgb.Booster) -> xgb.Booster:
        """Return the model of the best round; `booster` is that of the last one."""
        return cut(booster, self.round + 1) if self._bytes is None else xgb.Booster(model_file=self._bytes)
