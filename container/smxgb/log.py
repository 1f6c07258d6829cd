"""The log: lines that reach it whole and at once, warnings among them."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import TextIO
from weakref import WeakKeyDictionary

from smxgb.wording import KINDS, plain, printable

_STAMP = re.compile(r"\[[0-9:]+\] WARNING: \S+?:[0-9]+: ")
"""How the warnings of XGBoost's native code begin."""

_NOTICED: WeakKeyDictionary[TextIO, dict[str, None]] = WeakKeyDictionary()
"""The notices that a stream has been given, in their order."""


def open_streams() -> None:
    """Lead standard input, output and error nowhere where they were closed before this process began.

    A file or socket of the job would get their number, and be written to as the log.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - it takes no keyword
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", encoding="utf-8", closefd=False))


def log(text: str) -> None:
    """Write one line to standard output, at once. A log that nobody takes any more does not end the job.

    What it quotes from outside makes no second line, and none that passes for an evaluation or a failure.
    """
    _write(plain(text), sys.stdout)


def log_values(text: str) -> None:
    """Write one line with values of metrics, which CloudWatch and tuning jobs read, tabs between them."""
    _write("\t".join(map(printable, text.split("\t"))), sys.stdout)


def notice(text: str) -> None:
    """Write `Notice: ` and a sentence: what is no mistake, and may not be meant. Each text comes once."""
    said = _NOTICED.setdefault(sys.stdout, {})
    if text not in said:
        said[text] = None
        log(f"Notice: {text}")


def notices() -> tuple[str, ...]:
    """Return the notices that were written so far, in their order."""
    return tuple(_NOTICED.get(sys.stdout, ()))


def log_error(text: str) -> None:
    """Write one line to standard error, as `log` does; it may begin with the kind of a failure."""
    kind, colon, rest = text.partition(": ")
    _write(f"{kind}{colon}{plain(rest)}" if kind in KINDS else plain(text), sys.stderr)


def warnings_as_lines() -> None:
    """Make every warning one line of the log, each text once; XGBoost's by its name.

    Python would show them with the file and line that they passed through, and XGBoost's anew each time, for
    they begin with the time of day.
    """
    said: set[str] = set()

    def show(  # noqa: PLR0917 - Python calls it so
        message: Warning | str,
        category: type[Warning],  # noqa: ARG001
        filename: str,
        lineno: int,  # noqa: ARG001
        file: TextIO | None = None,  # noqa: ARG001
        line: str | None = None,
    ) -> None:
        text = " ".join(_STAMP.sub("", str(message)).split())
        stamped = _STAMP.match(str(message)) or "xgboost" in Path(filename).parts
        line = f"XGBoost: {text}" if stamped else f"Warning: {text}"
        if line not in said:
            said.add(line)
            log(line)

    warnings.showwarning = show


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    line = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(f"{line}\n")
        stream.flush()
    except OSError:
        # The unwritten line would be tried again when Python ends, and its failure become the exit code.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
