"""The other hosts' end of the control channel."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from math import inf
from multiprocessing import AuthenticationError
from threading import Thread
from typing import TYPE_CHECKING

from smxgb.errors import JobError, PlatformError
from smxgb.limits import beat_of
from smxgb.log import log
from smxgb.supervision.control.clock import Clock
from smxgb.supervision.control.leader import NEWS, OTHER_KEY, silence
from smxgb.supervision.control.wire import PATIENCE, NotReady, Wire, resolve, to_be_sent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.limits import Limits

FIRST_RETRY, LONGEST_RETRY = 0.1, 5.0
"""Seconds between attempts to reach the leader: they double from the first to the longest."""

MOMENT = 1.0
"""Seconds that a host outlives the leader: local mode ends all containers as soon as one has ended."""

OUTLIVING = 10.0
"""Seconds to wait for the leader's end at most."""


class Follower:
    """The control channel's end on a host that does not lead; see `smxgb.supervision.control.Control`."""

    def __init__(self, hosts: Hosts, limits: Limits, key: bytes) -> None:
        self._leader = hosts.names[0]
        self._name = hosts.current
        self._limits = limits
        self._key = key
        self.silence: float | None = limits.silence_timeout
        self.beat: float | None = beat_of(limits.silence_timeout)
        self._wire: Wire | None = None
        self._joined: list[Wire] = []
        self._reason = ""
        self._outbox: list[Mapping[str, object]] = [{"hello": hosts.current}]
        self._own_failure: tuple[float, JobError] | None = None
        self._is_over = self._may_leave = self._is_stopped = False
        self._clock = Clock()
        self._heard = self._last_beat = 0.0
        self._next_news = NEWS
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)
        Thread(target=self._connect, name="control", daemon=True).start()

    def fileno(self) -> int | None:
        """Return what is readable when the leader says something."""
        return self._epoll.fileno()

    def tell(self, message: Mapping[str, object]) -> None:
        """Send a message to the leader, or keep it until the leader is reached."""
        if self._wire is None:
            self._outbox.append(message)
        else:
            self._wire.send(message)  # a broken connection shows when it is read

    def done(self) -> None:
        """Say that this host's work is done."""
        self.tell({"done": True})

    def fail(self, error: JobError) -> None:
        """Report the failure of this host's work; what ends the job is for the leader to say."""
        error = to_be_sent(error, self._name)
        self._own_failure = self._clock.now(), error
        self.tell({"failed": error.as_json()})

    def stop(self) -> None:
        """Note that the leader has to judge soon, if it can be reached at all."""
        self._is_stopped = True

    def hear(self) -> list[Mapping[str, object]]:
        """Return what the leader says, or what its silence means."""
        now = self._clock.now()
        heard = self._listen(now)
        if now - self._last_beat >= (self.beat or 0):
            self._last_beat = now
            if self._wire is not None:
                self._wire.send({"beat": True})
        if not _final(heard) and not self._is_over:
            for error in self._causes(now):
                heard.append({"abort": error.as_json()})
                if self._wire is not None:  # should the leader wake up, it learns what has become of it
                    self._wire.send({"failed": error.as_json()})
                break
        self._is_over |= any("abort" in message for message in heard)
        self._may_leave |= any("leave" in message for message in heard)
        return heard

    def close(self) -> None:
        """Confirm the verdict. After a success, outlive the leader by a moment."""
        if self._wire is None:
            return
        self._wire.send({"bye": True})
        if not self._may_leave:
            self._wire.close()
            return
        deadline = time.monotonic() + OUTLIVING
        while time.monotonic() < deadline and self._wire.receive()[1]:
            self._epoll.poll(deadline - time.monotonic())
        time.sleep(MOMENT)

    def _connect(self) -> None:
        pause = FIRST_RETRY
        while True:
            try:
                wire = Wire.connect(resolve(self._leader), self._limits.control_port, self._key)
            except NotReady as error:
                self._reason = str(error)
            except AuthenticationError:
                if self._reason != OTHER_KEY:
                    log(f"{self._leader}, port {self._limits.control_port}, does not let us in: {OTHER_KEY}.")
                self._reason = OTHER_KEY
            except EOFError:
                self._reason = "it closes the connection"
            except (BlockingIOError, TimeoutError):
                self._reason = "it does not answer"
            except OSError as error:
                self._reason = error.strerror or str(error)
            else:
                self._joined.append(wire)
                os.eventfd_write(self._wake, 1)
                return
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_RETRY)

    def _listen(self, now: float) -> list[Mapping[str, object]]:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if self._wire is None and self._joined:
            self._wire, self._heard = self._joined[0], now
            self._epoll.register(self._wire.fileno(), select.EPOLLIN)
            for message in self._outbox:
                self._wire.send(message)
        if self._wire is None:
            return []
        messages, goes_on = self._wire.receive()
        if messages:
            self._heard = now
        if not goes_on and not self._is_over and not self._may_leave and not _final(messages):
            messages.append({"abort": self._lost().as_json()})
        return [message for message in messages if "beat" not in message]

    def _causes(self, now: float) -> Iterator[JobError]:
        """Yield what ends the job without a word of the leader."""
        limits = self._limits
        if self._own_failure and now - self._own_failure[0] > self._patience():
            yield self._own_failure[1]
        if self._wire is not None:
            if now - self._heard > limits.silence_timeout:
                yield self._certain() or silence(self._name, [self._leader], limits)
            return
        if self._clock.elapsed() > limits.start_timeout:
            place = f"port {limits.control_port} within start_timeout={limits.start_timeout} s"
            yield self._fault(f"could not be reached at {place}: {self._reason}. Start the job again.")
        if now > self._next_news:
            self._next_news = now + NEWS
            log(f"Waiting for {self._leader}, port {limits.control_port}: {self._reason}.")

    def _patience(self) -> float:
        """Return for how many seconds the leader may take to judge this host's failure."""
        if self._is_stopped:
            return PATIENCE if self._wire else 0
        return inf if self._wire else self._limits.silence_timeout

    def _lost(self) -> JobError:
        return self._certain() or self._fault(
            "was lost before it had saved the model: its connection closed without a word. It was killed, or "
            "its instance failed: see its log, and start the job again."
        )

    def _certain(self) -> JobError | None:
        """Return the failure of this host, unless it may be the consequence of the leader's."""
        if self._own_failure and self._own_failure[1].origin != "elsewhere":
            return self._own_failure[1]
        return None

    def _fault(self, text: str) -> JobError:
        return PlatformError(f"host {self._leader} {text}", origin="everywhere")


def _final(messages: list[Mapping[str, object]]) -> bool:
    return any("abort" in message or "leave" in message for message in messages)
