"""Virtual environments for programs that must not share ours: both SDKs, and an older XGBoost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def python_of(name: str) -> Path:
    """Return the Python of `.cache/<name>`, made from `requirements/<name>.txt` where it isn't up to date."""
    lock = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    folder = REPOSITORY / ".cache" / name
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    if installed.exists() and installed.read_text() == lock and python.exists():
        return python
    _run(sys.executable, "-m", "venv", "--clear", folder)
    for options in (["build.txt"], [f"{name}.txt", "--no-build-isolation"]):
        _run(python, "-m", "pip", "install", "--no-compile", "--require-hashes", "-r", *options)
    installed.write_text(lock)
    return python


def _run(*command: str | Path) -> None:
    """Run a command beside the lock files; its output is shown only if it fails."""
    done = subprocess.run(
        command, cwd=REPOSITORY / "requirements", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
