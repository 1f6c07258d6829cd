"""Models: what is asked of a trained booster, and how it is rewritten.

XGBoost alone is needed here, for a model is looked at in places that know of no job.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import xgboost as xgb

from smxgb.errors import AlgorithmError
from smxgb.saved_models import check_format, not_a_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    type Margins = npt.NDArray[np.float32]

PROBES = 64
PROBED_VALUES = 1 << 20
"""Two models are compared on at most 64 rows, and at most 1,048,576 values."""


def load_booster(data: bytearray, source: str) -> xgb.Booster:
    """Return the model in the bytes of a file that XGBoost wrote as JSON or UBJSON.

    `source` is the file as messages show it.

    Raises:
        UserError: If it is an old or pickled model, or none at all.
    """
    check_format(data, source)
    try:
        return xgb.Booster(model_file=data)
    except xgb.core.XGBoostError:
        raise not_a_model(source) from None


def probe(booster: xgb.Booster) -> Margins:
    """Return a model's margins for some rows: (rows,) or (rows, outputs).

    The rows are the same at each call. Their values are of all sizes, and a tenth of them is missing.
    """
    features = booster.num_features()
    generator = np.random.default_rng(0)
    shape = (max(1, min(PROBES, PROBED_VALUES // max(1, features))), features)
    rows = generator.normal(size=shape) * 10 ** generator.uniform(-3, 6, shape)
    rows[generator.random(shape) < 0.1] = np.nan  # noqa: PLR2004 - a tenth
    matrix = xgb.DMatrix(rows.astype(np.float32))
    return booster.predict(matrix, output_margin=True, validate_features=False)


def predict_alike(one: xgb.Booster, other: xgb.Booster) -> bool:
    """Return whether two models give the same margins for some rows."""
    return are_alike(probe(one), probe(other))


def are_alike(found: Margins, expected: Margins) -> bool:
    """Return whether margins differ by no more than the rounding of different processors."""
    largest = float(np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected)))
    return np.allclose(found, expected, rtol=1e-4, atol=1e-5 * largest, equal_nan=True)


def drops_trees(parameters: Mapping[str, object]) -> bool:
    """Return whether trees are left out at random (dropout), so that each round re-weights earlier trees."""
    return parameters.get("booster") == "dart" or any(parameters.get(n) for n in ("rate_drop", "one_drop"))


def can_be_cut(parameters: Mapping[str, object]) -> bool:
    """Return whether the model of an earlier round is a slice of a later round's model.

    That holds for plain trees. Dropout re-weights earlier trees, and a linear model has no trees to slice.
    """
    return parameters.get("booster") != "gblinear" and not drops_trees(parameters)


def cut(booster: xgb.Booster, rounds: int) -> xgb.Booster:
    """Return the model of the first `rounds` rounds, if it can be cut."""
    return booster[:rounds]


def with_scaled_leaves(booster: xgb.Booster) -> xgb.Booster:
    """Return a model of trees with dropout as plain trees whose leaves hold the weight of their tree.

    XGBoost 3.4 writes the weights to a place that earlier versions do not read, and serving images have
    earlier versions: they would count every tree in full.

    Raises:
        AlgorithmError: If the plain trees do not predict what the booster does.
    """
    model = json.loads(booster.save_raw("json"))
    trees = model["learner"]["gradient_booster"]["model"]
    weights = trees.pop("weight_drop", None)
    if weights is None:
        return booster
    for tree, weight in zip(trees["trees"], weights, strict=True):
        # A tree of several outputs keeps its leaves in `leaf_weights`, any other in `split_conditions`.
        key = "leaf_weights" if tree.get("leaf_weights") else "split_conditions"
        values = np.array(tree[key], np.float32)
        leaves = np.array(tree["left_children"]) == -1 if key == "split_conditions" else ...
        values[leaves] *= np.float32(weight)
        tree[key] = values.tolist()
    plain = xgb.Booster(model_file=bytearray(json.dumps(model).encode()))
    if not predict_alike(plain, booster):
        raise AlgorithmError("the trees with dropout could not be written as plain trees.")
    return plain
