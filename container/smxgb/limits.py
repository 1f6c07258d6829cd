"""The few settings that the supervisors must know before the work has checked all settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from smxgb.literals import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

PORTS = range(1024, 65_536)
"""The ports that a job may choose."""

SECONDS = range(1, 2**31)
"""The times that a job may choose."""

SCRIPT_STOPS = 110
"""Seconds in which a script that is told to stop must have ended."""

RESTARTS = range(100)
"""How often a job may let its work be started again."""


@dataclass(frozen=True)
class Limits:
    """Ports, of the control channel and of XGBoost's tracker, and times in seconds.

    All hosts must have connected within `start_timeout`. A host that sends nothing for `silence_timeout` is
    lost. A job that is told to stop has `stop_timeout` for its present round and for saving. Its work is
    started again `max_restarts` times if a process of it dies.
    """

    control_port: int = 7890
    start_timeout: int = 900
    silence_timeout: int = 30
    stop_timeout: int = 100
    max_restarts: int = 1
    tracker_port: int = 9091

    @classmethod
    def read(cls, hyperparameters: Mapping[str, object]) -> Limits:
        """Return the limits that hyperparameters.json sets.

        A value that is not allowed leaves the default: the work refuses it when it checks all settings.
        """
        found = {}
        for field in fields(cls):
            value = whole_number(hyperparameters.get(field.name))
            allowed = PORTS if field.name.endswith("_port") else SECONDS
            allowed = RESTARTS if field.name == "max_restarts" else allowed
            if isinstance(value, int) and not isinstance(value, bool) and value in allowed:
                found[field.name] = value
        return cls(**found)

    @classmethod
    def of_script(cls, hyperparameters: Mapping[str, object]) -> Limits:
        """Return the limits of a job that runs a user's script.

        When it is told to stop it may take nearly all of the 120 s that SageMaker gives. It is never started
        again: nobody knows what a second start would do.
        """
        return cls.read({"stop_timeout": SCRIPT_STOPS, **hyperparameters, "max_restarts": 0})


def beat_of(silence_timeout: float) -> float:
    """Return the seconds between two heartbeats: at least six fit into `silence_timeout`."""
    return min(1.0, silence_timeout / 6)
