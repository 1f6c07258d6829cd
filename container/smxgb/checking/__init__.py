"""Checking: what a job would do and need, without training."""

from smxgb.checking.dry_run import dry_run
from smxgb.checking.forecast import forecast_files

__all__ = [
    "dry_run",
    "forecast_files",
]
