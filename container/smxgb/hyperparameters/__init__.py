"""Hyperparameters: the declared table, and the way from SageMaker's texts to the settings of a job."""

from smxgb.hyperparameters.constraints import resolve_constraints
from smxgb.hyperparameters.declaration import ColumnRef, Hyperparameters, Method
from smxgb.hyperparameters.metric_choice import tunes_on_train
from smxgb.hyperparameters.parsing import Parsed, booster_params, parse

__all__ = [
    "ColumnRef",
    "Hyperparameters",
    "Method",
    "Parsed",
    "booster_params",
    "parse",
    "resolve_constraints",
    "tunes_on_train",
]
