"""The terminal: a bar of the rounds below the lines of the log, where a person watches a job."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from smxgb.environment import ROOT, in_container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smxgb.supervision.messages import OnRound, RoundDone


def is_watched(root: Path = ROOT) -> bool:
    """Return whether the errors go to a terminal outside a container; there the bar is drawn."""
    return sys.stderr.isatty() and not in_container(root)


@contextmanager
def round_bar(root: Path = ROOT) -> Iterator[OnRound | None]:
    """Draw a bar of the rounds where the job is watched; elsewhere there is none."""
    if not is_watched(root):
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415 - a job on SageMaker never needs it

    stderr = sys.stderr
    write_over_bar()
    with tqdm(file=stderr, unit="round", leave=False, dynamic_ncols=True) as bar:

        def on_round(done: RoundDone) -> None:
            bar.total = done.total
            bar.update(done.number + 1 - bar.n)

        yield on_round


def write_over_bar() -> None:
    """Make every line to a terminal clear its row first: the bar, of this process or its parent, is there."""
    sys.stdout, sys.stderr = _over_bar(sys.stdout), _over_bar(sys.stderr)


def _over_bar(stream: TextIO) -> TextIO:
    return _OverBar(stream.buffer, encoding=stream.encoding) if stream.isatty() else stream


class _OverBar(io.TextIOWrapper):
    """A stream whose lines begin by clearing the row that they are written to."""

    _begins_line = True

    def write(self, text: str) -> int:
        clear = "\r\x1b[K" if self._begins_line and text else ""
        self._begins_line = text.endswith("\n") if text else self._begins_line
        return super().write(clear + text)
