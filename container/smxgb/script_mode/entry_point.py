"""The entry point: how the user's program is made ready, and started."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from smxgb import submitted
from smxgb.errors import UserError
from smxgb.script_mode.script import SUBMITTED
from smxgb.script_mode.variables import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.overlay import Overlay
    from smxgb.script_mode.script import Script

REQUIREMENTS = "requirements.txt"


def make_ready(script: Script, overlay: Overlay, environ: Mapping[str, str]) -> list[str]:
    """Fetch the code and install what it needs; return the command that runs it, in the folder of the code.

    A name that ends in .sh, or is none of Python, is run by the shell. With a setup.py beside it, it is a
    module of a package (sagemaker-training 5.1, `_entry_point_type.get`).

    Raises:
        UserError: If the code is not there, or can't be made ready.
        PlatformError: If S3 or a package index does not answer.
    """
    _bring(script)
    entry = script.code / script.program
    given = arguments(script.hyperparameters)
    if not script.program.endswith(".sh") and (script.code / "setup.py").is_file():
        _install(script, overlay, environ, ["."])
        module = script.program.removesuffix(".py").replace("/", ".")
        return [str(overlay.python), "-m", module, *given]
    if not entry.is_file():
        held = ", ".join(sorted(path.name for path in script.code.iterdir())[:10]) or "nothing"
        raise UserError(f"sagemaker_program={script.program}: the code holds no such file, but {held}.")
    if not entry.resolve().is_relative_to(script.code.resolve()):
        raise UserError(f"sagemaker_program={script.program} leads out of the code: give a file within it.")
    _install(script, overlay, environ, [])
    if script.program.endswith(".py"):
        return [str(overlay.python), "--", script.program, *given]
    entry.chmod(0o755)
    return ["/bin/sh", "-c", 'exec "$0" "$@"', f"./{script.program}", *given]


def _bring(script: Script) -> None:
    """Put the code into the folder where it runs: an earlier job's is removed."""
    here = submitted.place_of(script.submitted)
    if here is not None and here.resolve() == script.code.resolve():
        script.code.mkdir(parents=True, exist_ok=True)
        return
    if script.code.is_mount():
        raise UserError(f"{script.code} is mounted: leave out {SUBMITTED}, or mount the code elsewhere.")
    shutil.rmtree(script.code, ignore_errors=True)
    found = submitted.fetch(script.submitted, script.code, SUBMITTED, script.region)
    if found != script.code:
        submitted.copy(found, script.code)


def _install(script: Script, overlay: Overlay, environ: Mapping[str, str], packages: list[str]) -> None:
    """Install the script's requirements, and a package that it is itself."""
    needed = ["-r", REQUIREMENTS] if (script.code / REQUIREMENTS).is_file() else []
    what = [*packages, *needed]
    if what:
        title = f"{script.program}'s package" if packages else REQUIREMENTS
        overlay.install(what, title, environ, script.code, isolated=script.is_isolated)
