"""Models for serving: loaded from their files, and what they predict."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.log import log
from smxgb.rows import ATTRIBUTE, Schema, Signature
from smxgb.serving.dense import predict_dense
from smxgb.training.model import load_booster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from smxgb.rows import FloatArray, Rows

INDEXING = "libsvm_indexing"
"""The attribute that says what libsvm files called the first feature."""

VOTED = ("multi:softmax", "binary:hinge")
"""The objectives whose outputs are classes: models together answer with the class of most of them."""

type Kind = Literal["value", "margin"]


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
        name: What messages call it.
        booster: The booster, which predicts with one thread.
        signature: The rows that it needs.
        objective: XGBoost's name of what it was trained for.
        classes: How many classes it tells apart, 0 if that is not what it does.
        booster_name: XGBoost's name of the kind of booster.
        rounds: The rounds that predict, from the first to before the last; (0, 0) for all.
    """

    name: str
    booster: xgb.Booster
    signature: Signature
    objective: str
    classes: int
    booster_name: str
    rounds: tuple[int, int]

    @cached_property
    def _lock(self) -> Lock:
        return Lock()

    def predict(self, rows: Rows, kind: Kind = "value") -> FloatArray:
        """Return the predictions, shape (rows,) or (rows, outputs). Threads may call it side by side."""
        if self.booster_name == "gblinear":
            # XGBoost predicts linear models from a matrix only, and one at a time.
            with self._lock:
                return self.booster.predict(
                    self._matrix(rows), output_margin=kind == "margin", validate_features=False
                )
        if isinstance(rows, np.ndarray):
            return predict_dense(self.booster, rows, kind, self.rounds)
        found: FloatArray = self.booster.inplace_predict(
            rows, iteration_range=self.rounds, predict_type=kind, validate_features=False
        )
        return found

    def contributions(self, rows: Rows) -> FloatArray:
        """Return the SHAP values of the features and then the bias, shape (rows, [outputs,] features + 1)."""
        return self._asked(rows, pred_contribs=True)

    def leaves(self, rows: Rows) -> FloatArray:
        """Return the index of the leaf in each tree; shape (rows, trees)."""
        return self._asked(rows, pred_leaf=True)

    def _asked(self, rows: Rows, **asked: bool) -> FloatArray:
        with self._lock:
            return self.booster.predict(
                self._matrix(rows), iteration_range=self.rounds, validate_features=False, **asked
            )

    def _matrix(self, rows: Rows) -> xgb.DMatrix:
        return xgb.DMatrix(rows, nthread=1)


@dataclass(frozen=True)
class Ensemble:
    """One model, or several that answer together: all have the same features, objective and classes."""

    models: tuple[Model, ...]

    @property
    def first(self) -> Model:
        """The first one, which stands for all in what they have in common."""
        return self.models[0]

    @property
    def signature(self) -> Signature:
        """The rows that they need."""
        return self.first.signature

    @cached_property
    def trees(self) -> int:
        """About how many trees a row goes through."""
        rounds = sum(model.booster.num_boosted_rounds() for model in self.models)
        return rounds * max(1, self.first.classes)

    def predict(self, rows: Rows, kind: Kind = "value") -> FloatArray:
        """Return the mean of the predictions of all models; of classes, the one that most of them say."""
        if len(self.models) == 1:
            return self.first.predict(rows, kind)
        found = np.stack([model.predict(rows, kind) for model in self.models])
        if self.first.objective in VOTED and kind == "value":
            return _most_frequent(found)
        return found.mean(axis=0, dtype=np.float64).astype(np.float32)


def load_folder(folder: Path, *, ensemble: bool = True) -> Ensemble:
    """Return the models in the files of a folder; without `ensemble` only the first by name.

    Files that are no models are passed over, each with a line of the log.

    Raises:
        UserError: If there is no model, or if models have not the same features and objective.
    """
    models: list[Model] = []
    refusals: list[str] = []
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != "."):
        try:
            models.append(load_model(path))
        except UserError as error:
            refusals.extend(error.mistakes)
        if models and not ensemble:
            break
    if not models:
        raise UserError(*(refusals or [f"{folder} holds no file: the endpoint has no model."]))
    for refusal in refusals:
        log(f"Passed over: {refusal}")
    for model in models[1:]:
        _check_alike(models[0], model)
    if len(models) > 1:
        log(f"{len(models)} models answer together: {', '.join(model.name for model in models)}.")
    return Ensemble(tuple(models))


def load_model(path: Path) -> Model:
    """Return the model in a file. Raises UserError if it is none."""
    return as_model(load_booster(bytearray(path.read_bytes()), path.name), path.name)


def as_model(booster: xgb.Booster, name: str) -> Model:
    """Return a booster as a model for serving; the booster then predicts with one thread."""
    booster.set_param({"nthread": 1, "device": "cpu"})
    learner = json.loads(booster.save_config())["learner"]
    best = booster.attr("best_iteration")
    booster_name = learner["gradient_booster"]["name"]
    rounds = int(best) + 1 if best is not None and best.isdecimal() else 0
    return Model(
        name,
        booster,
        signature_of(booster),
        learner["objective"]["name"],
        int(learner["learner_model_param"]["num_class"]),
        booster_name,
        (0, min(rounds, booster.num_boosted_rounds()) if booster_name != "gblinear" else 0),
    )


def signature_of(booster: xgb.Booster) -> Signature:
    """Return what rows a booster needs."""
    names = booster.feature_names
    schema = Schema(tuple(names), invented=False) if names else Schema.unnamed(booster.num_features())
    categories = {
        schema.names[index]: tuple(words.to_pylist())
        for index, (_, words) in enumerate(_categories(booster))
        if words is not None
    }
    first = booster.attr(INDEXING)
    schema = Schema(
        schema.names,
        schema.invented,
        first_index=int(first) if first in {"0", "1"} else None,
        categories=categories,
    )
    return Signature.of_model(schema, booster.attr(ATTRIBUTE))


def _categories(booster: xgb.Booster) -> Sequence[tuple[str, Any]]:
    """Return the words of each feature, None for one of numbers."""
    if "c" not in (booster.feature_types or ()):
        return ()
    found: Sequence[tuple[str, Any]] = booster.get_categories(export_to_arrow=True).to_arrow()
    return found


def _check_alike(first: Model, other: Model) -> None:
    """Raise UserError unless two models can answer together."""
    if first.objective != other.objective or first.classes != other.classes:
        raise UserError(
            f"{first.name} and {other.name} can't answer together: their objectives are {first.objective} "
            f"and {other.objective}. Keep one, or set SAGEMAKER_INFERENCE_ENSEMBLE=false."
        )
    if first.signature.schema.names != other.signature.schema.names:
        raise UserError(
            f"{first.name} and {other.name} can't answer together: their features differ. Keep one, or set "
            "SAGEMAKER_INFERENCE_ENSEMBLE=false."
        )


def _most_frequent(found: FloatArray) -> FloatArray:
    """Return each row's most frequent class, the lowest of several; `found` has shape (models, rows)."""
    classes = np.unique(found)
    votes = np.stack([(found == each).sum(axis=0) for each in classes])
    return classes[votes.argmax(axis=0)]
