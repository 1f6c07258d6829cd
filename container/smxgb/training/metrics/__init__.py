"""The metrics that the container computes itself, over the rows of all workers.

A metric of weighted sums is one entry of `own.OWN`; `curves` has the areas under a curve. Both take what is
predicted (`Problem`) and the rows' labels and weights (`Truth`).
"""

from smxgb.training.metrics.curves import curve_value
from smxgb.training.metrics.own import OwnMetrics
from smxgb.training.metrics.problem import Problem, Truth

__all__ = [
    "OwnMetrics",
    "Problem",
    "Truth",
    "curve_value",
]
