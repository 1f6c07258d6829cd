"""Programs: how the processes of a job are started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = (sys.executable, "-P", "-m", "smxgb")
"""The beginning of each command line.

With -P Python imports no module from the current folder, where one may have the name of one of ours.
"""


@dataclass(frozen=True)
class Program:
    """A process that the work has the supervisor start on the same host.

    `name` is what messages call it. `command` is its command line, to which the supervisor adds the options
    `--link` and `--beat`. `environ` are environment variables in addition to those of the work. The process
    counts as frozen after `silence` seconds without a sign of life.
    """

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    silence: float
