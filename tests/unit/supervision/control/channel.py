"""The control channel of a job, all of whose ends are in this process."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING

from smxgb.environment import Hosts
from smxgb.limits import Limits
from smxgb.supervision.control.follower import Follower
from smxgb.supervision.control.leader import Leader
from smxgb.supervision.messages import Abort, Arrived

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from smxgb.errors import JobError
    from smxgb.supervision.control import Control
    from smxgb.supervision.messages import Message

NAMES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
KEY = b"key"
HAS = {"num_round": "1"}
DEADLINE = 30.0


def free_port() -> int:
    with socket.create_server((NAMES[0], 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def arrive(*ends: Control, workers: int = 1) -> None:
    for end in ends:
        end.tell(Arrived({"mode": "dask", "workers": workers}))


def wait(ends: Sequence[Control]) -> None:
    """Wait until one end can be read, or for a moment: time that passes can be news too."""
    select.select([fd for end in ends if (fd := end.fileno()) is not None], [], [], 0.02)


def first_heard(end: Control) -> list[Message]:
    """Turn one end until it has heard something."""
    deadline = time.monotonic() + DEADLINE
    while not (heard := end.hear()):
        assert time.monotonic() < deadline
        wait([end])
    return heard


class Channel:
    """The supervisors' ends, turned one after the other. `heard` is what each has heard so far."""

    def __init__(self, **limits: int) -> None:
        common = {"control_port": free_port(), "start_timeout": 20, "max_restarts": 0}
        self.limits = Limits(**{**common, **limits})
        self.leader = Leader(Hosts(NAMES[0], NAMES), self.limits, KEY, HAS)
        self.ends: list[Control] = [self.leader]
        self.heard: list[list[Message]] = [[], [], []]

    def join(self, *, key: bytes = KEY, has: Mapping[str, str | int] = HAS) -> Follower:
        follower = self.namesake(len(self.ends), key=key, has=has)
        self.ends.append(follower)
        return follower

    def namesake(self, index: int, *, key: bytes = KEY, has: Mapping[str, str | int] = HAS) -> Follower:
        """Return another end of a host, which is not turned with the others."""
        return Follower(Hosts(NAMES[index], NAMES), self.limits, key, has)

    def turn(self) -> None:
        for heard, end in zip(self.heard, self.ends, strict=False):
            heard.extend(end.hear())

    def until(self, condition: Callable[[], object]) -> None:
        """Turn all ends until something is so."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, self.heard
            self.turn()
            wait(self.ends)

    def until_listening(self) -> None:
        self.until(lambda: self.leader._door.address)

    def until_connected(self, index: int) -> None:
        self.until(lambda: self.leader._members[NAMES[index]].wire)

    def hear[M: Message](self, index: int, kind: type[M]) -> M:
        """Turn all ends until one has heard a message of this kind; return the first."""
        self.until(lambda: self.has_heard(index, kind))
        return next(message for message in self.heard[index] if isinstance(message, kind))

    def has_heard(self, index: int, kind: type[Message]) -> bool:
        return any(isinstance(message, kind) for message in self.heard[index])

    def cause(self, index: int) -> JobError:
        return self.hear(index, Abort).error
