"""Boosting: the loop over rounds, with its evaluation lines and early stopping.

The loop is ours rather than `xgboost.train`'s because it numbers its rounds itself: that makes training that
is continued from a saved model equal to training in one go.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import xgboost as xgb

from smxgb.errors import AlgorithmError
from smxgb.log import log
from smxgb.training.artifacts import predict_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.training.evaluation import Evaluator, Values

type History = dict[str, dict[str, list[float]]]
"""Data set -> metric -> its value after each round."""


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `patience` rounds in which `metric` on the data set `data` got no better."""

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
    """A trained booster, cut at its best round if it was stopped early or could have been.

    `rounds` were trained; `best_round` counts from 0, None without early stopping.
    """

    booster: xgb.Booster
    rounds: int = 0
    history: History = field(default_factory=dict)
    best_round: int | None = None
    best_score: float | None = None


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
    keeper = _BestRound(recipe.early_stopping, recipe.parameters) if recipe.early_stopping else None
    for number in range(recipe.rounds):
        booster.update(train, iteration=number)
        trained.rounds = number + 1
        values = evaluator.evaluate(booster, number)
        for (data, metric), value in values.items():
            trained.history.setdefault(data, {}).setdefault(metric, []).append(value)
        after_round(number, values)
        if keeper and keeper.is_enough(number, values, booster):
            break
    if keeper and keeper.score is not None:
        trained.best_round, trained.best_score = keeper.round, keeper.score
        trained.booster = keeper.cut(booster)
    elif keeper:
        log(keeper.undecided)
    if drops_trees(recipe.parameters):
        trained.booster = with_scaled_leaves(trained.booster)
    return trained


def drops_trees(parameters: Mapping[str, object]) -> bool:
    """Return whether trees are left out at random (dropout), so that each round re-weights earlier trees."""
    return parameters.get("booster") == "dart" or any(parameters.get(n) for n in ("rate_drop", "one_drop"))


class _BestRound:
    """Follows the monitored metric. Where a booster can't be cut at a round, it keeps the best round's bytes.

    Slicing is exact for plain trees; dropout re-weights earlier ones, and a linear model has none to slice.
    """

    def __init__(self, rule: EarlyStopping, parameters: Mapping[str, object]) -> None:
        self._rule = rule
        self._keeps_bytes = parameters.get("booster") == "gblinear" or drops_trees(parameters)
        self._bytes: bytearray | None = None
        self.round = 0
        self.score: float | None = None

    def is_enough(self, number: int, values: Mapping[tuple[str, str], float], booster: xgb.Booster) -> bool:
        """Take in one round; return whether the patience is used up."""
        value = values[self._rule.data, self._rule.metric]
        if self._rule.better(value, self.score):
            self.round, self.score = number, value
            if self._keeps_bytes:
                self._bytes = booster.save_raw("ubj")
        return self.score is not None and number - self.round >= self._rule.patience

    @property
    def undecided(self) -> str:
        """The line of the log for a metric that had no value in any round."""
        return (
            f"Early stopping had nothing to go by: {self._rule.data}-{self._rule.metric} was undefined (nan) "
            "in every round. The model is that of the last round."
        )

    def cut(self, booster: xgb.Booster) -> xgb.Booster:
        """Return the booster as it was after the best round."""
        if self._bytes is not None:
            return xgb.Booster(model_file=self._bytes)
        return booster if self._keeps_bytes else booster[: self.round + 1]


def with_scaled_leaves(booster: xgb.Booster) -> xgb.Booster:
    """Return a model of trees with dropout as plain trees whose leaves hold the weight of their tree.

    XGBoost 3.4 writes the weights where earlier versions, those of serving images among them, do not
    look: they would predict as if every tree counted in full.

    Raises:
        AlgorithmError: If the plain trees do not predict what the booster does.
    """
    model = json.loads(booster.save_raw("json"))
    trees = model["learner"]["gradient_booster"]["model"]
    weights = trees.pop("weight_drop", None)
    if weights is None:
        return booster
    for tree, weight in zip(trees["trees"], weights, strict=True):
        # A tree of several outputs has its leaves elsewhere, and their numbers where others have the leaves.
        key = "leaf_weights" if tree.get("leaf_weights") else "split_conditions"
        values = np.array(tree[key], np.float32)
        leaves = np.array(tree["left_children"]) == -1 if key == "split_conditions" else ...
        values[leaves] *= np.float32(weight)
        tree[key] = values.tolist()
    plain = xgb.Booster(model_file=bytearray(json.dumps(model).encode()))
    if not predict_alike(plain, booster):
        raise AlgorithmError("the trees with dropout could not be written as plain trees.")
    return plain
