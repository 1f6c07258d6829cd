"""The few settings that the supervisors must know before anybody has checked the settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_HIGHEST = {"control_port": 65_535}
_NUMBER = re.compile(r"[\s\"']*([0-9]{1,9})(\.0*)?[\s\"']*")


@dataclass(frozen=True)
class Limits:
    """The port of the control channel, and times in seconds.

    `start_timeout` is how long all hosts may take to come, `silence_timeout` how long one may be silent.
    """

    control_port: int = 7890
    start_timeout: int = 900
    silence_timeout: int = 30

    @classmethod
    def read(cls, hyperparameters: Mapping[str, object]) -> Limits:
        """Return what hyperparameters.json says, in any spelling that the SDKs have for a whole number.

        A value that can't be one leaves the default: the work checks all settings, and refuses it.
        """
        found = {}
        for field in fields(cls):
            number = _NUMBER.fullmatch(str(hyperparameters.get(field.name)))
            if number and 0 < int(number[1]) <= _HIGHEST.get(field.name, inf):
                found[field.name] = int(number[1])
        return cls(**found)


def beat_of(silence_timeout: float) -> float:
    """Return the seconds between signs of life: several fit into the silence that counts as a loss."""
    return min(1.0, silence_timeout / 6)
