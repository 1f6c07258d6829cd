"""The ways in which a job can fail, and the words in which a failure is reported.

Every failure that reaches the user is one of three kinds, each with its exit code. Everything else that is
raised is a fault of ours and becomes an `AlgorithmError` at the one boundary, `as_job_error`.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

type Origin = Literal["here", "everywhere", "elsewhere"]
"""Where a failure comes from: this host; all hosts at once, so that its text names the guilty one; perhaps
another host, of whose failure it may be the mere consequence."""

FAILURE_LIMIT = 1023
"""Bytes of a failure file. SageMaker shows the first 1,024 characters of it as FailureReason."""

_DISK_CURES = {
    errno.EIO: "the disk or the network behind it failed; start the job again",
    errno.EROFS: "mount it so that it can be written",
}


class JobError(Exception):
    """A failure that is reported to the user: one or more mistakes, each a sentence with its cure.

    `exit_code` is that of its kind unless the failure brings its own.
    """

    kind = "AlgorithmError"
    exit_code = 1

    def __init__(
        self, mistake: str, *mistakes: str, exit_code: int | None = None, origin: Origin = "here"
    ) -> None:
        self.mistakes = tuple(map(_one_line, (mistake, *mistakes)))
        self.origin = origin
        if exit_code is not None:
            self.exit_code = exit_code
        super().__init__(*self.mistakes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_json(self) -> dict[str, object]:
        """Return the failure as a JSON object, to be sent to another process."""
        return {
            "kind": self.kind,
            "mistakes": list(self.mistakes),
            "exit_code": self.exit_code,
            "origin": self.origin,
        }

    def of_host(self, name: str) -> JobError:
        """Return the failure as other hosts see it: each mistake names the host, unless it does already."""
        if self.origin == "everywhere":
            return self
        mistakes = [f"host {name}: {mistake}" for mistake in self.mistakes]
        return type(self)(*mistakes, exit_code=self.exit_code, origin=self.origin)

    def lines(self) -> list[str]:
        """Return the report: the kind, count and first mistake on line 1, then one line for each other."""
        first, *others = self.mistakes
        if not others:
            return [f"{self.kind}: {first}"]
        numbered = [f"{number}. {text}" for number, text in enumerate(others, start=2)]
        return [f"{self.kind}: {len(self.mistakes)} mistakes. 1. {first}", *numbered]

    def failure_text(self) -> str:
        """Return what fits into the failure file: whole mistakes while they fit, the first cut if need be."""
        first, *others = self.lines()
        text = _cut(first, FAILURE_LIMIT)
        for number, line in enumerate(others):
            left = len(others) - number - 1
            ending = f"\n... and {left} more in the log." if left else ""
            if _size(text) + 1 + _size(line) + _size(ending) > FAILURE_LIMIT:
                rest = f"\n... and {left + 1} more in the log."
                return text + rest if _size(text) + _size(rest) <= FAILURE_LIMIT else text
            text = f"{text}\n{line}"
        return text


class AlgorithmError(JobError):
    """A fault of this container."""


class UserError(JobError):
    """A mistake in the job's settings or data, which its owner can mend."""

    kind = "UserError"
    exit_code = 2


class PlatformError(JobError):
    """The host, its network, disk or memory failed."""

    kind = "PlatformError"
    exit_code = 3


def from_json(value: Mapping[str, object]) -> JobError:
    """Return the failure that another process sent. What is not understood becomes a fault of ours."""
    match value:
        case {"kind": str(kind), "mistakes": [str(first), *others], "exit_code": int(code), "origin": origin}:
            error = {"UserError": UserError, "PlatformError": PlatformError}.get(kind, AlgorithmError)
            known = origin if origin in get_args(Origin.__value__) else "here"
            return error(first, *map(str, others), exit_code=code, origin=cast("Origin", known))
    return AlgorithmError(f"a failure was reported in a form that is not understood: {value}")


class Mistakes:
    """Collects user errors, so that a job reports all of them at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Note one mistake; the same text counts once."""
        if text not in self._texts:
            self._texts.append(text)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Turn a `UserError` raised inside into notes, and go on after the block."""
        try:
            yield
        except UserError as error:
            for text in error.mistakes:
                self.add(text)

    def __iter__(self) -> Iterator[str]:
        """Yield what was noted, in order."""
        return iter(self._texts)

    def raise_any(self, origin: Origin = "here") -> None:
        """Raise one `UserError` with all that was noted, if anything was."""
        if self._texts:
            raise UserError(*self._texts, origin=origin)


def as_job_error(error: BaseException) -> JobError:
    """Return the failure to report for anything that was raised."""
    if isinstance(error, JobError):
        return error
    if isinstance(error, MemoryError) or "bad_alloc" in str(error):
        return PlatformError(
            "out of memory: use an instance with more memory, or fewer or smaller columns and rows."
        )
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        place = f" while writing {error.filename}" if error.filename else ""
        return PlatformError(f"the disk is full{place}: give the job a larger volume (volume_size).")
    if isinstance(error, OSError) and error.errno in {errno.EACCES, errno.EPERM}:
        return PlatformError(
            f"{error.filename or 'a file'}: permission denied to the user that the container runs as "
            f"(uid {os.geteuid()}): change the owner or mode on the host, or run the container as another "
            "user."
        )
    if isinstance(error, OSError) and error.errno in {errno.EIO, errno.EROFS}:
        return PlatformError(f"{error.filename or 'a file'}: {error.strerror}: {_DISK_CURES[error.errno]}.")
    text = " ".join(str(error).split())
    return AlgorithmError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _one_line(text: str) -> str:
    """Return the text without line breaks, and with what is no Unicode (file names may be so) spelled out."""
    return " ".join(text.splitlines()).encode(errors="backslashreplace").decode()


def _size(text: str) -> int:
    return len(text.encode())


def _cut(text: str, limit: int) -> str:
    return text if _size(text) <= limit else text.encode()[: limit - 3].decode(errors="ignore") + "..."
