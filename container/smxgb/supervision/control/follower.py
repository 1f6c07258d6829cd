"""The other hosts' end of the control channel."""

from __future__ import annotations

import time
from contextlib import suppress
from math import inf
from multiprocessing import AuthenticationError
from typing import TYPE_CHECKING

from smxgb.errors import JobError
from smxgb.limits import beat_of
from smxgb.log import log
from smxgb.supervision.control.clock import Clock, Interval
from smxgb.supervision.control.connections import Connections
from smxgb.supervision.control.failures import (
    OTHER_KEY,
    heard_nothing,
    lost_leader,
    shorten,
    unreachable_leader,
)
from smxgb.supervision.control.wire import NEWS, PATIENCE, NotReady, Wire, ports, resolve
from smxgb.supervision.messages import Abort, Beat, Bye, Done, Failed, Hello, Leave, Restart, Restarting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.limits import Limits
    from smxgb.supervision.messages import Message

FIRST_RETRY, LONGEST_RETRY = 0.1, 5.0
"""Seconds between attempts to reach the leader: they double from the first to the longest."""

MOMENT = 1.0
"""Seconds that a host outlives the leader: local mode ends all containers as soon as one has ended."""

OUTLIVING = 10.0
"""Seconds to wait for the leader's end at most."""


class Follower:
    """The control channel's end on a host that does not lead; see `smxgb.supervision.control.Control`."""

    def __init__(self, hosts: Hosts, limits: Limits, key: bytes, has: Mapping[str, str | int]) -> None:
        self._leader = hosts.names[0]
        self._name = hosts.current
        self._limits = limits
        self._key = key
        self.silence: float = limits.silence_timeout
        self.beat: float | None = beat_of(limits.silence_timeout)
        self._wire: Wire | None = None
        self._reason = ""
        self._outbox: list[Message] = [Hello(hosts.current, has)]
        self._own_failure: tuple[float, JobError] | None = None
        self._is_over = self._may_leave = self._is_stopped = False
        self._clock = Clock()
        self._heard = 0.0
        self._beats = Interval(beat_of(limits.silence_timeout))
        self._news = Interval(NEWS)
        self._connections = Connections[Wire]()
        self._connections.start(self._connect)

    def fileno(self) -> int | None:
        """Return what is readable when the leader says something."""
        return self._connections.fileno()

    def tell(self, message: Message) -> None:
        """Send a message to the leader, or keep it until there is a connection."""
        if self._wire is None:
            self._outbox.append(message)
        else:
            self._wire.send(message)  # a broken connection is noticed when it is read

    def done(self) -> None:
        """Say that this host's work is done."""
        self.tell(Done())

    def fail(self, error: JobError) -> None:
        """Report the failure of this host's work. The leader decides what ends the job."""
        error = shorten(error, self._name)
        self._own_failure = self._clock.now(), error
        self.tell(Failed(error))

    def stop(self) -> None:
        """Note that the leader has only seconds to judge, and none if there is no connection."""
        self._is_stopped = True

    def hear(self) -> list[Message]:
        """Return what the leader says, or what its silence means."""
        now = self._clock.now()
        heard = self._listen(now)
        if self._beats.begin_next(now):
            self._send_now(Beat())
        if not _is_final(heard) and not self._is_over:
            if error := next(self._causes(now), None):
                heard.append(Abort(error))
                self._send_now(Failed(error))  # if the leader is only stopped, it reads this when it goes on
            elif self._wire is None and self._news.begin_next(now):
                log(f"Waiting for {self._leader}, port {self._limits.control_port}: {self._reason}.")
        self._is_over |= any(isinstance(message, Abort) for message in heard)
        self._may_leave |= any(isinstance(message, Leave) for message in heard)
        return heard

    def close(self) -> None:
        """Confirm the verdict. After a success, outlive the leader by a moment."""
        if self._wire is None:
            return
        self._wire.send(Bye())
        if not self._may_leave:
            self._wire.close()
            return
        deadline = time.monotonic() + OUTLIVING
        while time.monotonic() < deadline and self._wire.receive()[1]:
            self._connections.wait(deadline - time.monotonic())
        time.sleep(MOMENT)

    def _connect(self) -> None:
        """Try to reach the leader until it works, and note why it has not worked yet."""
        pause = FIRST_RETRY
        port, spare = ports(self._limits.control_port)
        while (wire := self._try(port) or self._try_spare(spare)) is None:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_RETRY)
        self._connections.hand_over(wire)

    def _try(self, port: int) -> Wire | None:
        """Return the connection with the leader, None if it is not to be had yet."""
        try:
            return Wire.connect(resolve(self._leader), port, self._key)
        except NotReady as error:
            self._reason = str(error)
        except AuthenticationError:
            if self._reason != OTHER_KEY:
                log(f"{self._leader}, port {port}, does not let us in: {OTHER_KEY}.")
            self._reason = OTHER_KEY
        except EOFError:
            self._reason = "it closes the connection"
        except (BlockingIOError, TimeoutError):
            self._reason = "it does not answer"
        except OSError as error:
            self._reason = error.strerror or str(error)
        return None

    def _try_spare(self, port: int) -> Wire | None:
        """Return the connection with a leader that can't open the control channel's port, and will say so."""
        with suppress(NotReady, AuthenticationError, EOFError, OSError):
            return Wire.connect(resolve(self._leader), port, self._key)
        return None

    def _listen(self, now: float) -> list[Message]:
        """Return what the leader has said, its signs of life excepted, or that it was lost."""
        for opened in self._connections.take_opened():
            if isinstance(opened, JobError):
                return [Abort(opened)]
            self._wire, self._heard = opened, now
            self._connections.add(opened)
            for message in self._outbox:
                opened.send(message)
        if self._wire is None:
            return []
        messages, is_open = self._wire.receive()
        if messages:
            self._heard = now
        for message in messages:
            if isinstance(message, Restart):
                # What this host says from here on is of the new work.
                self._own_failure = None
                self._wire.send(Restarting(message.attempt))
        if not is_open and not self._is_over and not self._may_leave and not _is_final(messages):
            messages.append(Abort(self._certain_failure() or lost_leader(self._leader)))
        return [message for message in messages if not isinstance(message, Beat)]

    def _send_now(self, message: Message) -> None:
        """Send a message to the leader if there is a connection."""
        if self._wire is not None:
            self._wire.send(message)

    def _causes(self, now: float) -> Iterator[JobError]:
        """Yield what ends this host's part of the job without a verdict of the leader."""
        if self._own_failure and now - self._own_failure[0] > self._patience():
            yield self._own_failure[1]
        if self._wire is not None:
            if now - self._heard > self._limits.silence_timeout:
                yield self._certain_failure() or heard_nothing(self._name, [self._leader], self._limits)
        elif self._clock.elapsed() > self._limits.start_timeout:
            yield unreachable_leader(self._leader, self._reason, self._limits)

    def _patience(self) -> float:
        """Return for how many seconds the leader may take to judge this host's failure."""
        if self._is_stopped:
            return PATIENCE if self._wire else 0
        return inf if self._wire else self._limits.silence_timeout

    def _certain_failure(self) -> JobError | None:
        """Return the failure of this host, unless it may be the consequence of the leader's."""
        if self._own_failure and self._own_failure[1].origin != "elsewhere":
            return self._own_failure[1]
        return None


def _is_final(messages: Iterable[Message]) -> bool:
    return any(isinstance(message, Abort | Leave) for message in messages)
