"""Training: one worker, from its rows to the model. Every mode runs `run` in each of its workers."""

from smxgb.training.checks import Checked, Seen, check_rows
from smxgb.training.gpu import stay_near
from smxgb.training.journal import checkpoint_outlook
from smxgb.training.memory_needs import XGBOOST_MAX_BIN
from smxgb.training.memory_plan import UNCERTAINTY, Memory, Plan, free_memory, make_plans
from smxgb.training.report import start_block
from smxgb.training.worker import run

__all__ = [
    "UNCERTAINTY",
    "XGBOOST_MAX_BIN",
    "Checked",
    "Memory",
    "Plan",
    "Seen",
    "check_rows",
    "checkpoint_outlook",
    "free_memory",
    "make_plans",
    "run",
    "start_block",
    "stay_near",
]
