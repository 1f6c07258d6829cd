"""Settings: the declared table, and the way from SageMaker's texts to the checked settings of a job."""

from smxgb.settings.description import describe, settings_table
from smxgb.settings.feature_constraints import resolve_constraints
from smxgb.settings.hyperparameters import DASHBOARD_PORT, Hyperparameters, Method
from smxgb.settings.label_domains import BINARY, DISTINCT, GAINED, PROBABILITY, WHOLE_GRADE, Domain, Labels
from smxgb.settings.metric_choice import tunes_on_train
from smxgb.settings.metrics import CURVES, METRICS, Curve, Metric
from smxgb.settings.objectives import OBJECTIVES, Objective, kind_of
from smxgb.settings.parsing import Parsed, booster_params, parse, shaping_settings
from smxgb.settings.value_types import ColumnRef

__all__ = [
    "BINARY",
    "CURVES",
    "DASHBOARD_PORT",
    "DISTINCT",
    "GAINED",
    "METRICS",
    "OBJECTIVES",
    "PROBABILITY",
    "WHOLE_GRADE",
    "ColumnRef",
    "Curve",
    "Domain",
    "Hyperparameters",
    "Labels",
    "Method",
    "Metric",
    "Objective",
    "Parsed",
    "booster_params",
    "describe",
    "kind_of",
    "parse",
    "resolve_constraints",
    "settings_table",
    "shaping_settings",
    "tunes_on_train",
]
