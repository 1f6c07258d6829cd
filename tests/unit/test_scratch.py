from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from smxgb.scratch import PREFIX, YOUNG, scratch_folder

HOLDER = """
import sys
from pathlib import Path
from smxgb.scratch import scratch_folder
with scratch_folder(None, Path(sys.argv[1]), lambda folder: None) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def nobody(_: Path) -> None:
    """Hear of no folder."""


@pytest.fixture(autouse=True)
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let one folder be both /tmp and the job's, for this process and those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def age(folder: Path) -> None:
    """Make a folder older than any that is about to be locked."""
    old = time.time() - 2 * YOUNG
    os.utime(folder, (old, old))


def test_a_scratch_folder_is_gone_afterwards(volume: Path) -> None:
    with scratch_folder(None, volume, nobody) as folder:
        assert folder.parent == volume
        (folder / "rows").write_bytes(b"1")
    assert not list(volume.iterdir())


def test_what_a_killed_job_has_left_is_removed_and_what_a_living_one_holds_is_not(volume: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(volume)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        age(held)
        with scratch_folder(None, volume, nobody):
            assert held.exists()
        holder.kill()
    with scratch_folder(None, volume, nobody):
        assert not held.exists()


def test_a_folder_that_may_not_be_locked_yet_stays(volume: Path) -> None:
    young = Path(tempfile.mkdtemp(prefix=PREFIX, dir=volume))
    with scratch_folder(None, volume, nobody):
        assert young.exists()


def test_a_chosen_folder_is_used_and_nothing_else_in_it_touched(volume: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    other = chosen / f"{PREFIX}of-another-host"
    other.mkdir(parents=True)
    age(other)
    with scratch_folder(str(chosen), volume, nobody) as folder:
        assert folder.parent == chosen
    assert other.exists()
