"""Programs: how the processes of a job are started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = (sys.executable, "-P", "-m", "smxgb")
"""The beginning of each command line. -P keeps a module that lies in the current folder from standing in for
one of the container's."""


@dataclass(frozen=True)
class Program:
    """A process that the work wants beside itself on its host.

    `name` is what messages call it. `command` is its command line, to which the supervisor adds how it is
    reached and how often it wants a sign of life; after `silence` seconds without one the process counts as
    frozen. `environ` are environment variables beside those of the work.
    """

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    silence: float
