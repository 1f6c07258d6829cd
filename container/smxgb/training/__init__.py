"""Training: one worker, from its rows to the model. Every mode runs `run` in each of its workers."""

from smxgb.training.checks import Examined, examine
from smxgb.training.gpu import free_memory as free_gpu_memory
from smxgb.training.gpu import stay_near
from smxgb.training.plan import UNCERTAINTY, Plan, make_plan
from smxgb.training.report import start_block
from smxgb.training.worker import place_of, run

__all__ = [
    "UNCERTAINTY",
    "Examined",
    "Plan",
    "examine",
    "free_gpu_memory",
    "make_plan",
    "place_of",
    "run",
    "start_block",
    "stay_near",
]
