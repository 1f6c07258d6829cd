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
from smxgb.training.state import Best, History, TrainingState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.training.evaluation import Evaluator, Values


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

    def is_enough(self, rounds: int, best: Best | None) -> bool:
        """Return whether the patience is used up after so many rounds."""
        return best is not None and rounds - 1 - best.round >= self.patience

    @property
    def monitored(self) -> str:
        """The data set and the metric, as the log writes them."""
        return f"{self.data}-{self.metric}"

    @property
    def undecided(self) -> str:
        """The line of the log for a metric that had no value in any round."""
        return (
            f"Early stopping had nothing to go by: {self.monitored} was undefined (nan) in every round. The "
            "model is that of the last round."
        )


@dataclass(frozen=True)
class Recipe:
    """What to train: XGBoost's parameters, the total of rounds, when to stop early."""

    parameters: Mapping[str, object]
    rounds: int
    early_stopping: EarlyStopping | None = None

    @property
    def can_continue(self) -> bool:
        """Whether training can go on from a saved state.

        XGBoost does not save the position biases of lambdarank_unbiased, nor which trees are still to update.
        """
        is_update = self.parameters.get("process_type") == "update"
        return not is_update and not self.parameters.get("lambdarank_unbiased")

    def is_over(self, rounds: int, best: Best | None) -> bool:
        """Return whether training ends after so many rounds, with this best one so far."""
        rule = self.early_stopping
        return rounds >= self.rounds or (rule is not None and rule.is_enough(rounds, best))


@dataclass
class Trained:
    """A trained booster; with early stopping that of the best round.

    `rounds` is the number of rounds that were trained. `best_round` counts from 0; it is None without early
    stopping, and if the monitored metric had no value in any round. `monitored` is the data set and the
    metric that told the best round, as the log writes them. `is_stopped` says that training was told to end
    before its time.
    """

    booster: xgb.Booster
    rounds: int = 0
    history: History = field(default_factory=dict)
    best_round: int | None = None
    best_score: float | None = None
    monitored: str | None = None
    is_stopped: bool = False


class Run:
    """Training between two rounds: a booster, and what is known of its rounds.

    Args:
        recipe: What to train.
        booster: The booster, with the rounds of `start`.
        start: The state from which training goes on; None for the first round of all.
    """

    def __init__(self, recipe: Recipe, booster: xgb.Booster, start: TrainingState | None = None) -> None:
        self._recipe = recipe
        self._booster = booster
        self._history: History = start.history if start else {}
        self._best = start.best if start else None
        self.undefined: set[str] = set(start.undefined) if start else set()
        self.rounds = start.rounds if start else 0

    @property
    def is_over(self) -> bool:
        """Whether no round follows."""
        return self._recipe.is_over(self.rounds, self._best)

    def take(self, values: Values) -> None:
        """Note that a round is done, and its values."""
        for (data, metric), value in values.items():
            series = self._history.setdefault(data, {}).setdefault(metric, [])
            series += [math.nan] * (self.rounds - len(series))
            series.append(value)
        rule = self._recipe.early_stopping
        if rule and rule.better(values[rule.data, rule.metric], self._best.score if self._best else None):
            kept = None if can_be_cut(self._recipe.parameters) else bytes(self._booster.save_raw("ubj"))
            self._best = Best(self.rounds, values[rule.data, rule.metric], kept)
        self.rounds += 1

    def state(self) -> TrainingState:
        """Return the state after the last round."""
        model = bytes(self._booster.save_raw("ubj"))
        return TrainingState(self.rounds, model, self._history, self._best, tuple(sorted(self.undefined)))

    def trained(self) -> Trained:
        """Return the booster as it is to be saved: that of the best round, if early stopping watches."""
        booster, best = self._booster, self._best
        if best:
            saved = best.model
            booster = cut(booster, best.round + 1) if saved is None else _loaded(saved)
        elif self._recipe.early_stopping:
            log(self._recipe.early_stopping.undecided)
        if drops_trees(self._recipe.parameters):
            booster = with_scaled_leaves(booster)
        # A metric that an earlier part of the training has computed, and this one not, would end early.
        history = {
            data: {metric: series for metric, series in metrics.items() if len(series) == self.rounds}
            for data, metrics in self._history.items()
        }
        trained = Trained(booster, self.rounds, history, is_stopped=not self.is_over)
        if best and self._recipe.early_stopping:
            trained.best_round, trained.best_score = best.round, best.score
            trained.monitored = self._recipe.early_stopping.monitored
        return trained


def boost(
    recipe: Recipe,
    train: xgb.DMatrix,
    evaluator: Evaluator,
    after_round: Callable[[Run, Values], bool],
    start: TrainingState | None = None,
) -> Trained:
    """Train and return the booster.

    Args:
        recipe: What to train.
        train: The training matrix.
        evaluator: Evaluates the booster after each round.
        after_round: Called after each round, with its values; returns whether training is to end now.
        start: The state from which training goes on.
    """
    parameters = [*recipe.parameters.items(), *evaluator.parameters]
    saved = bytearray(start.model) if start else None
    booster = xgb.Booster(parameters, [train, *evaluator.matrices.values()], saved)
    run = Run(recipe, booster, start)
    while not run.is_over:
        booster.update(train, iteration=run.rounds)
        values = evaluator.evaluate(booster, run.rounds, run.undefined)
        run.take(values)
        if after_round(run, values):
            break
    return run.trained()


def finish(recipe: Recipe, state: TrainingState) -> Trained:
    """Return what was trained when `state` is that of the last round."""
    booster = xgb.Booster(list(recipe.parameters.items()), model_file=bytearray(state.model))
    return Run(recipe, booster, state).trained()


def _loaded(model: bytes) -> xgb.Booster:
    return xgb.Booster(model_file=bytearray(model))
