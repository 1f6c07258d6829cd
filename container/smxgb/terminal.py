"""The terminal: a progress bar of the rounds below the log, if a person watches the job."""

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
    """Return whether standard error is a terminal outside a container. Only there is the bar drawn."""
    return sys.stderr.isatty() and not in_container(root)


@contextmanager
def round_bar(root: Path = ROOT) -> Iterator[OnRound | None]:
    """Draw the bar while the block runs; yield what updates it, or None if nobody watches."""
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
    """Make every line that goes to a terminal clear its row first, where the bar may be."""
    sys.stdout, sys.stderr = _over_bar(sys.stdout), _over_bar(sys.stderr)


def _over_bar(stream: TextIO) -> TextIO:
    return _OverBar(stream.buffer, encoding=stream.encoding) if stream.isatty() else stream


class _OverBar(io.TextIOWrapper):
    """A stream that clears the row of the terminal before each line."""

    _begins_line = True

    def write(self, text: str) -> int:
        clear = "\r\x1b[K" if self._begins_line and text else ""
        self._begins_line = text.endswith("\n") if text else self._begins_line
        return super().write(clear + text)
