"""Checking: what a job would do and need, without training."""

from smxgb.checking.dry_run import perform_dry_run
from smxgb.checking.forecast import forecast_files

__all__ = [
    "forecast_files",
    "perform_dry_run",
]
