"""What the command line says to who mistypes it: the container's own, and the scripts around it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import smxgb

REPOSITORY = Path(__file__).parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "smxgb", *arguments)


def test_a_mistyped_command_is_guessed() -> None:
    done = command("chek")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "smxgb: error: there is no command 'chek': did you mean check?"


def test_the_commands_of_the_supervisor_are_not_listed() -> None:
    assert "there are train, check, describe, serve, predict." in command("x").stderr
    assert "dask" not in command("--help").stdout


def test_the_version() -> None:
    assert command("--version").stdout == f"smxgb {smxgb.__version__}\n"


@pytest.mark.parametrize("script", ["scripts/check", "scripts/quickstart", "scripts/venv", ".ci/run"])
def test_a_script_that_takes_no_such_argument_does_nothing(script: str) -> None:
    wrong = run(REPOSITORY / script, "--bogus")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith(f"usage: {script}")
    assert not wrong.stdout
    asked = run(REPOSITORY / script, "--help")
    assert asked.returncode == 0
    assert asked.stdout == wrong.stderr


def test_lock_explains_itself_and_locks_nothing() -> None:
    done = run(REPOSITORY / "scripts/lock", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: scripts/lock [options of `uv pip compile`]")
