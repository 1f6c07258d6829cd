"""The messages between the processes of a job, and their encoding as JSON.

A message is a value. To add one, declare its class here and handle it where it arrives: `watch` in the
supervisor, `control` between the hosts, `Link.wait_for` in the work.
"""

# Without `from __future__ import annotations`: `decode` reads the types of the fields.
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from smxgb.errors import JobError, from_json
from smxgb.program import Program

FIRST_PHASE = "start"
"""The phase of each process until it begins another."""


@dataclass(frozen=True)
class Message:
    """What one process tells another. Each subclass is one kind, with its own fields."""


# From the work to its supervisor.


@dataclass(frozen=True)
class PhaseBegins(Message):
    """The work is in phase `name` now. A failure names the phase in which the work ended."""

    name: str


@dataclass(frozen=True)
class RoundDone(Message):
    """Round `number`, counted from 0, is done. There are at most `total` rounds."""

    number: int
    total: int


@dataclass(frozen=True)
class Planned(Message):
    """The work has its memory plan. `has_slower` says that there is another, which needs less memory."""

    has_slower: bool


@dataclass(frozen=True)
class Beat(Message):
    """A sign of life. Hosts send it to each other too."""


@dataclass(frozen=True)
class Scratch(Message):
    """The work uses `folder` for temporary files. The supervisor removes it when the work has ended."""

    folder: Path


@dataclass(frozen=True)
class Start(Message):
    """The supervisor shall start `program` on this host, beside the process that asks for it.

    If the program ends before it has said `Succeeded`, the job fails.
    """

    program: Program


@dataclass(frozen=True)
class Succeeded(Message):
    """The process has done its part of the job. An end without this message is a failure.

    `text` is the last line of the log. `results` are the files that the supervisor renames when the whole job
    has succeeded: see `smxgb.supervision.publishing`.
    """

    text: str
    results: tuple[Path, ...] = ()


# From the work to its supervisor, and from a host to the first one, the leader.


@dataclass(frozen=True)
class Arrived(Message):
    """The configuration of this host is in order, and the host is ready to join the others.

    `offer` must be the same on all hosts.
    """

    offer: Mapping[str, str | int]


@dataclass(frozen=True)
class Failed(Message):
    """The work, or the work of one host, has failed."""

    error: JobError


# From the process that opens the meeting point to all hosts, and there to the work.


@dataclass(frozen=True)
class Rendezvous(Message):
    """Where the workers of all hosts meet: what reaches the tracker of XGBoost, or the scheduler of Dask.

    `addresses` are those from which the hosts of the job connect. Each process that the work starts later
    hears of it too.
    """

    arguments: Mapping[str, str | int]
    addresses: tuple[str, ...]


# From the supervisor to the work.


@dataclass(frozen=True)
class Lead(Message):
    """All hosts have arrived. The work on the first host shall open the meeting point at its `address`.

    `addresses` are those from which the hosts of the job connect, this one's among them. Each process that
    the work starts later hears of it too. `attempt` counts how often the work was started again.
    """

    address: str
    addresses: tuple[str, ...]
    attempt: int = 0


@dataclass(frozen=True)
class Stop(Message):
    """The work shall stop after its present round, and save what it has trained."""


@dataclass(frozen=True)
class Finished(Message):
    """The program `name`, which the work has started, has said `Succeeded` with this text."""

    name: str
    text: str


# Between the hosts.


@dataclass(frozen=True)
class Hello(Message):
    """The first message of a connection: `host` has connected with the leader.

    `has` are the digests of what must be the same on all hosts, by name.
    """

    host: str
    has: Mapping[str, str | int]


@dataclass(frozen=True)
class Done(Message):
    """The work of this host has succeeded."""


@dataclass(frozen=True)
class Abort(Message):
    """The leader's verdict: the job has failed, and all hosts end now."""

    error: JobError


@dataclass(frozen=True)
class Restart(Message):
    """The leader's decision: all hosts end their processes now, and start the work again.

    `error` is what has happened, `attempt` counts from 1.
    """

    error: JobError
    attempt: int


@dataclass(frozen=True)
class Restarting(Message):
    """This host has heard of the restart `attempt`: what it says from now on is of the new work."""

    attempt: int


@dataclass(frozen=True)
class Leave(Message):
    """The leader's verdict: the job has succeeded, the model is saved, and all hosts may end."""


@dataclass(frozen=True)
class Bye(Message):
    """This host has read the verdict and closes the connection."""


type OnRound = Callable[[RoundDone], None]
"""Called after each round."""


def encode(message: Message) -> bytes:
    """Return a message as a line of JSON, such as `["RoundDone", {"number": 3, "total": 9}]`.

    It has no line break at its end, nor elsewhere.
    """
    return json.dumps([type(message).__name__, vars(message)], default=_as_json).encode()


def decode(line: bytes) -> Message | None:
    """Return the message of a line, or None if its kind is unknown or its fields are not those of its kind.

    Raises ValueError if the line is not JSON.
    """
    match json.loads(line):
        case [str(name), dict(values)] if kind := _KINDS.get(name):
            try:
                return kind(
                    **{field.name: _READERS[field.type](values[field.name]) for field in fields(kind)}
                )
            except (KeyError, TypeError):
                return None
    return None


def _as_json(value: object) -> object:
    match value:
        case Path():
            return str(value.absolute())  # the reader's current folder may be another
        case JobError():
            return value.as_json()
        case Program():
            return asdict(value)
    raise TypeError(type(value))


def _checked[T](kind: type[T]) -> Callable[[object], T]:
    def read(value: object) -> T:
        if not isinstance(value, kind):
            raise TypeError(value)
        return value

    return read


_text, _list, _object = _checked(str), _checked(list), _checked(dict)

_READERS: Mapping[Any, Callable[[object], object]] = {
    int: _checked(int),
    bool: _checked(bool),
    str: _text,
    Path: lambda value: Path(_text(value)),
    tuple[str, ...]: lambda value: tuple(_text(each) for each in _list(value)),
    tuple[Path, ...]: lambda value: tuple(Path(_text(path)) for path in _list(value)),
    Mapping[str, str | int]: _object,
    JobError: lambda value: from_json(_object(value)),
    Program: lambda value: Program(**_object(value)),
}
"""How a field of each type is read. They raise TypeError for what is of another type."""

_KINDS = {kind.__name__: kind for kind in Message.__subclasses__()}
