"""The ways in which a job can fail, and the words in which a failure is reported.

Every failure that reaches the user is one of three kinds, each with its exit code. Everything else that is
raised is a fault of ours and becomes an `AlgorithmError` at the one boundary, `as_job_error`.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, cast, get_args

from smxgb.wording import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

type Origin = Literal["here", "everywhere", "elsewhere"]
"""Where a failure comes from: this host; all hosts at once, so that its text names the guilty one; perhaps
another host, of whose failure it may be the mere consequence."""

FAILURE_LIMIT = 1023
"""Bytes of a failure file. SageMaker shows the first 1,024 characters of it as FailureReason."""

MOST_SENT, LONGEST_SENT = 20, 8_000
"""Mistakes that other hosts hear of at most, and the bytes of each: messages between hosts are short."""

_DISK_CURES = {
    errno.EIO: "the disk or the network behind it failed; start the job again",
    errno.EROFS: "mount it so that it can be written",
}

_NO_THREAD = ("can't start new thread", "Resource temporarily unavailable")
"""How Python, and the C++ library, say that a limit on processes is reached (EAGAIN)."""

_NATIVE_TRACE = "\nStack trace:"
"""What XGBoost's native code puts between what is wrong and its own addresses."""


class JobError(Exception):
    """A failure that is reported to the user: one or more mistakes, each a sentence with its cure.

    `exit_code` is that of its kind unless the failure brings its own. `more` counts mistakes that stand only
    in the log of the host that has found them. `may_pass` says that the work may succeed if it is done again,
    `wants_memory` that it must then do with less memory.
    """

    kind = "AlgorithmError"
    exit_code = 1

    def __init__(
        self,
        mistake: str,
        *mistakes: str,
        exit_code: int | None = None,
        origin: Origin = "here",
        more: int = 0,
        may_pass: bool = False,
        wants_memory: bool = False,
    ) -> None:
        self.mistakes = tuple(map(_one_line, (mistake, *mistakes)))
        self.origin = origin
        self.more = more
        self.may_pass = may_pass
        self.wants_memory = wants_memory
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
            "more": self.more,
            "may_pass": self.may_pass,
            "wants_memory": self.wants_memory,
        }

    def of_host(self, name: str) -> JobError:
        """Return the failure as other hosts see it, who need not see all of very many mistakes.

        Each mistake names the host, unless it does already.
        """
        place = "" if self.origin == "everywhere" else f"host {name}: "
        first, *others = (_cut(place + mistake, LONGEST_SENT) for mistake in self.mistakes[:MOST_SENT])
        more = self.more + max(0, len(self.mistakes) - MOST_SENT)
        return type(self)(
            first,
            *others,
            exit_code=self.exit_code,
            origin=self.origin,
            more=more,
            may_pass=self.may_pass,
            wants_memory=self.wants_memory,
        )

    def lines(self) -> list[str]:
        """Return the report: the kind, count and first mistake on line 1, then one line for each other."""
        rest = [f"... and {self.more:,} more in the log of the host that has found them."]
        return [*self._numbered(), *(rest if self.more else ())]

    def failure_text(self) -> str:
        """Return what fits into the failure file: whole mistakes while they fit, the first cut if need be."""
        first, *others = self._numbered()
        text = _cut(first, FAILURE_LIMIT)
        left = len(others) + self.more
        for line in others:
            if _size(text) + 1 + _size(line) + _size(_rest(left - 1)) > FAILURE_LIMIT:
                break
            text = f"{text}\n{line}"
            left -= 1
        return text + _rest(left) if _size(text) + _size(_rest(left)) <= FAILURE_LIMIT else text

    def _numbered(self) -> list[str]:
        first, *others = self.mistakes
        if not others and not self.more:
            return [f"{self.kind}: {first}"]
        numbered = [f"{number}. {text}" for number, text in enumerate(others, start=2)]
        return [f"{self.kind}: {len(self.mistakes) + self.more} mistakes. 1. {first}", *numbered]


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
            more = value.get("more")
            return error(
                first,
                *map(str, others),
                exit_code=code,
                origin=cast("Origin", known),
                more=more if isinstance(more, int) else 0,
                may_pass=value.get("may_pass") is True,
                wants_memory=value.get("wants_memory") is True,
            )
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
    """Return the failure to report for anything that was raised.

    Libraries put errors of their own around the system's: what lies below counts too.
    """
    for below in _causes(error):
        if failure := _known(below):
            return failure
    text = " ".join(str(error).partition(_NATIVE_TRACE)[0].split())
    return AlgorithmError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once: an error may be its own cause."""
    seen: list[BaseException] = []
    below: BaseException | None = error
    while below is not None and below not in seen:
        yield below
        seen.append(below)
        below = below.__cause__


def _known(error: BaseException) -> JobError | None:
    """Return the failure that an error means by itself, if it means one."""
    if isinstance(error, JobError):
        return error
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM or "bad_alloc" in str(error):
        return PlatformError(
            "out of memory: use an instance with more memory, or fewer or smaller columns and rows."
        )
    if number == errno.EAGAIN or any(words in str(error) for words in _NO_THREAD):
        return PlatformError(
            "no more processes or threads can be started: raise the limit of the container (--pids-limit) or "
            "of its user (ulimit -u), or set a smaller nthread."
        )
    return _of_file(error) if isinstance(error, OSError) else None


def _of_file(error: OSError) -> JobError | None:
    """Return what an error of the system says of a file, or a disk."""
    place = error.filename or "a file"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        written = f" while writing {error.filename}" if error.filename else ""
        return PlatformError(f"the disk is full{written}: give the job a larger volume (volume_size).")
    if error.errno == errno.EFBIG:
        return PlatformError(f"{place} can't grow any more: raise the limit on a file's size (ulimit -f).")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return PlatformError(
            f"{place}: permission denied to the user that the container runs as (uid {os.geteuid()}): "
            "change the owner or mode on the host, or run the container as another user."
        )
    if error.errno in {errno.EIO, errno.EROFS}:
        return PlatformError(f"{place}: {error.strerror}: {_DISK_CURES[error.errno]}.")
    if isinstance(error, (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return PlatformError(
            f"{what}: something beside this job has removed or replaced it. Leave the job's folders alone "
            "while it runs, and start it again."
        )
    return None


def _rest(left: int) -> str:
    return f"\n... and {left} more in the log." if left else ""


def _one_line(text: str) -> str:
    return plain(" ".join(text.splitlines()))


def _size(text: str) -> int:
    return len(text.encode())


def _cut(text: str, limit: int) -> str:
    return text if _size(text) <= limit else text.encode()[: limit - 3].decode(errors="ignore") + "..."
