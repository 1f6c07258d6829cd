"""The metrics that the container computes itself, over the rows of all workers.

A metric of weighted sums is one entry of `own.OWN`; `curves` has the areas under a curve. Both take what is
predicted (`Problem`) and the rows' labels and weights (`Truth`).
"""

from smxgb.training.metrics.curves import TOGETHER, Ranked, areas, curve_value, rankings
from smxgb.training.metrics.own import OwnMetrics, Sums
from smxgb.training.metrics.problem import Problem, Truth

__all__ = [
    "TOGETHER",
    "OwnMetrics",
    "Problem",
    "Ranked",
    "Sums",
    "Truth",
    "areas",
    "curve_value",
    "rankings",
]
