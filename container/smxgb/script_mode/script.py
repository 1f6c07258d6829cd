"""The script of a job: what the hyperparameters and the environment say about the user's own program.

The names are those of SageMaker's training toolkit (sagemaker-training 5.1, `params.py`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smxgb.environment import Paths, read_json
from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "sagemaker_"
PROGRAM, SUBMITTED = "sagemaker_program", "sagemaker_submit_directory"
OWN = (
    "sagemaker_container_log_level",
    "sagemaker_enable_cloudwatch_metrics",
    "sagemaker_job_name",
    PROGRAM,
    "sagemaker_region",
    "sagemaker_s3_output",
    SUBMITTED,
    "default_user_module_name",
    "_tuning_objective_metric",
)
"""The hyperparameters that no script gets, for they are about it."""

CODE = "code"
"""The channel that holds the code where a job has no network."""

NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._+/-]*")


@dataclass(frozen=True)
class Script:
    """The user's program.

    `program` is its name within the code. `submitted` says where the code is, a path or an address, as the
    job gives it, and `is_isolated` that this host holds it as a channel, for there is no network.
    `hyperparameters` are decoded; `framework` holds those others that begin with sagemaker_.
    """

    paths: Paths
    program: str
    submitted: str
    is_isolated: bool
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    framework: Mapping[str, Any] = field(default_factory=dict)
    log_level: int | str = 20
    region: str | None = None
    job_name: str = ""

    @property
    def code(self) -> Path:
        """Where the code stands while it runs."""
        return self.paths.base / "code"


def has_script(environ: Mapping[str, str]) -> bool:
    """Return whether a job brings a program of its own; if its settings can't be read, the work says why."""
    if environ.get(PROGRAM.upper()):
        return True
    try:
        given = read_json(Paths.from_environ(environ).config / "hyperparameters.json")
    except (UserError, OSError):
        return False
    return bool(_decoded(given.get(PROGRAM)))


def read_script(environ: Mapping[str, str]) -> Script:
    """Return the script of a job that has one.

    Raises:
        UserError: If the configuration can't be read, or the program's name can't be one.
    """
    paths = Paths.from_environ(environ)
    raw = read_json(paths.config / "hyperparameters.json")
    given = {name: _decoded(value) for name, value in raw.items()}
    program = str(environ.get(PROGRAM.upper()) or given.get(PROGRAM))
    if not NAME.fullmatch(program) or ".." in program.split("/"):
        raise UserError(
            f"{PROGRAM}={program!r} is no name of a program: it must be a path within the code, of letters, "
            "digits and . _ + - /."
        )
    submitted = str(
        given.get(SUBMITTED) or environ.get(SUBMITTED.upper()) or _channel(paths) or paths.base / "code"
    )
    return Script(
        paths=paths,
        program=program,
        submitted=submitted,
        is_isolated=Path(submitted.removeprefix("file://")).is_relative_to(paths.data / CODE),
        hyperparameters={n: v for n, v in given.items() if n not in OWN and not n.startswith(PREFIX)},
        framework={n: v for n, v in given.items() if n not in OWN and n.startswith(PREFIX)},
        log_level=given.get("sagemaker_container_log_level", 20),
        region=given.get("sagemaker_region") or environ.get("AWS_REGION"),
        job_name=str(given.get("sagemaker_job_name") or ""),
    )


def _channel(paths: Paths) -> Path | None:
    """Return the code that a channel holds: its one archive, else its folder; None without the channel."""
    folder = paths.data / CODE
    if not folder.is_dir():
        return None
    archives = sorted(folder.glob("*.tar.gz"))
    return archives[0] if len(archives) == 1 and len(list(folder.iterdir())) == 1 else folder


def _decoded(value: object) -> Any:
    """Return a hyperparameter as the SDK had it before it made JSON of it; what is no JSON stays a text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
