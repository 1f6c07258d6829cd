from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WATCH = """
import sys, time
from pathlib import Path
from smxgb.log import log, log_values
from smxgb.supervision.messages import RoundDone
from smxgb.terminal import round_bar
with round_bar(Path(sys.argv[1])) as on_round:
    if on_round is None:
        print("no bar")
    for number in range(3):
        log_values(f"[{number}]\\ttrain-rmse:1.5")
        if on_round:
            time.sleep(0.15)
            on_round(RoundDone(number, 3))
log("done")
"""
CLEARED = b"\r\x1b[K"


def on_a_terminal(script: str, root: Path) -> bytes:
    """Run a script whose output and errors go to a terminal; return all that was written to it."""
    reading, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    with subprocess.Popen([sys.executable, "-c", script, root], stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                data = os.read(reading, 65_536)
            except OSError:  # how Linux says that nobody has the terminal open any more
                break
            if not data:
                break
            shown += data
    os.close(reading)
    assert process.returncode == 0, shown
    return shown


def test_a_terminal_shows_a_bar_and_whole_lines(tmp_path: Path) -> None:
    shown = on_a_terminal(WATCH, tmp_path)
    assert b"3/3 [" in shown
    assert b"round" in shown
    for number in range(3):
        assert CLEARED + b"[%d]\ttrain-rmse:1.5\r\n" % number in shown
    assert shown.endswith(CLEARED + b"done\r\n")


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_container_has_no_bar_even_with_a_terminal(mark: str, tmp_path: Path) -> None:
    (tmp_path / mark).parent.mkdir(exist_ok=True)
    (tmp_path / mark).touch()
    assert on_a_terminal(WATCH, tmp_path).splitlines()[0] == b"no bar"
    assert CLEARED not in on_a_terminal(WATCH, tmp_path)


def test_without_a_terminal_there_is_no_bar(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCH, tmp_path], capture_output=True, text=True, check=True, timeout=30
    )
    assert (
        done.stdout == "no bar\n" + "".join(f"[{number}]\ttrain-rmse:1.5\n" for number in range(3)) + "done\n"
    )
    assert not done.stderr
