"""The leader's end of the control channel: it calls the roll, judges the causes, lets the others leave."""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from threading import Thread
from typing import TYPE_CHECKING

from smxgb.errors import JobError, PlatformError, UserError, from_json
from smxgb.limits import beat_of
from smxgb.log import log
from smxgb.supervision.control.clock import Clock
from smxgb.supervision.control.wire import PATIENCE, NotReady, Wire, own_address, to_be_sent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.limits import Limits

SETTLING = 2.0
"""Seconds in which a better cause may still come, when a failure may be the consequence of another host's."""

NEWS = 60.0
"""Seconds between the lines of the log that say who is being waited for."""

RETRY = 1.0

OTHER_KEY = "its key is another job's, so its hosts, hyperparameters or job name differ from this host's"


@dataclass
class Member:
    """What the leader knows of a host.

    `heard` is when it last gave a sign of life, by the leader's clock. `arrived` is what it has to offer,
    once its configuration is in order.
    """

    name: str
    wire: Wire | None = None
    heard: float = 0.0
    phase: str | None = None
    arrived: Mapping[str, object] | None = None
    is_done: bool = False
    is_gone: bool = False


class Leader:
    """The first host's end of the control channel; see `smxgb.supervision.control.Control`."""

    def __init__(self, hosts: Hosts, limits: Limits, key: bytes) -> None:
        self._hosts = hosts
        self._limits = limits
        self._key = key
        self.silence: float | None = limits.silence_timeout
        self.beat: float | None = beat_of(limits.silence_timeout)
        self._members = {name: Member(name) for name in hosts.names}
        self._own = self._members[hosts.current]
        self._inbox: list[Mapping[str, object]] = []
        self._failures: list[tuple[float, JobError]] = []
        self._verdict: JobError | None = None
        self._called = self._succeeded = self._is_stopped = False
        self._clock = Clock()
        self._last_beat = 0.0
        self._next_news = min(NEWS, limits.start_timeout / 2)
        self._address: str | None = None
        self._not_ready = ""
        self._refused: set[str] = set()
        self._joined: deque[tuple[Member, Wire, list[Mapping[str, object]]]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)
        Thread(target=self._open, name="control", daemon=True).start()

    def fileno(self) -> int | None:
        """Return what is readable when a host says something."""
        return self._epoll.fileno()

    def tell(self, message: Mapping[str, object]) -> None:
        """Take in what this host's own work says."""
        self._take(self._own, message)

    def done(self) -> None:
        """Note that this host's work is done, and so the model is safe."""
        self._own.is_done = True

    def fail(self, error: JobError) -> None:
        """Note the failure of this host's work."""
        self._note(to_be_sent(error, self._own.name))

    def stop(self) -> None:
        """Note that there is no time for hosts that may still come."""
        self._is_stopped = True

    def hear(self) -> list[Mapping[str, object]]:
        """Take in what all hosts have said, judge it, and return what this host has to do."""
        self._listen()
        self._own.heard = self._clock.now()
        self._beat()
        if self._verdict is None:
            self._judge()
        heard, self._inbox = self._inbox, []
        return heard

    def close(self) -> None:
        """Tell the verdict to all, and to those who come too late for it, and see that it has arrived."""
        if self._succeeded and self._verdict is None:
            self._send({"leave": True})
        begin = self._clock.elapsed()
        come_until = min(begin + self._limits.silence_timeout, self._limits.start_timeout)
        if self._is_stopped:
            come_until = begin
        while self._is_awaited(begin + PATIENCE, come_until):
            self._epoll.poll(self.beat)
            self._listen()
            self._beat()

    def _is_awaited(self, answer_until: float, come_until: float) -> bool:
        """Return whether a host may still confirm the verdict, or come and take it."""
        now = self._clock.elapsed()
        others = [member for member in self._members.values() if member is not self._own]
        return any(
            not member.is_gone and now < (answer_until if member.wire else come_until) for member in others
        )

    def _open(self) -> None:
        """Listen, as soon as this host has an address, and let in who belongs to the job."""
        listener = None
        while listener is None:
            try:
                address = own_address(self._hosts)
                listener = socket.create_server((address, self._limits.control_port), backlog=128)
            except NotReady as error:
                self._not_ready = str(error)
                time.sleep(RETRY)
            except OSError as error:
                place = f"port {self._limits.control_port} of {self._own.name}"
                text = f"{place}, the control channel's, can't be opened: {error.strerror}. Set control_port."
                self._failures.append((0.0, PlatformError(text, origin="everywhere")))
                os.eventfd_write(self._wake, 1)
                return
        self._address = address
        log(f"Control channel: {address} (of {self._own.name}), port {self._limits.control_port}.")
        os.eventfd_write(self._wake, 1)
        while True:
            with suppress(OSError):
                stream, (address, _) = listener.accept()
                Thread(target=self._admit, args=(stream, address), name="admit", daemon=True).start()

    def _admit(self, stream: socket.socket, address: str) -> None:
        with suppress(OSError, EOFError):
            try:
                wire = Wire.accept(stream, self._key)
            except AuthenticationError:
                self._refuse(address)
                return
            messages, goes_on = wire.receive(PATIENCE)
            name = messages[0].get("hello") if messages else None
            if goes_on and name in self._members and name != self._own.name:
                self._joined.append((self._members[name], wire, messages))
                os.eventfd_write(self._wake, 1)
            else:
                wire.close()

    def _refuse(self, address: str) -> None:
        """Note who has another key; it tries again and again."""
        if address not in self._refused:
            self._refused.add(address)
            log(f"{address} is not let in: {OTHER_KEY}.")

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._joined:
            member, wire, messages = self._joined.popleft()
            if member.wire is not None:
                wire.send({"abort": _namesake(member).as_json()})
                wire.close()
                log(f"A second process that says it is {member.name} is not let in.")
                continue
            member.wire = wire
            self._epoll.register(wire.fileno(), select.EPOLLIN)
            for message in messages:
                self._take(member, message)
            if self._verdict is not None:
                wire.send({"abort": self._verdict.as_json()})
        for member in self._connected():
            self._read(member)

    def _read(self, member: Member) -> None:
        assert member.wire is not None  # noqa: S101 - of a connected member
        messages, goes_on = member.wire.receive()
        for message in messages:
            self._take(member, message)
        goes_on = goes_on or member.is_gone
        if not goes_on:
            self._part(member)
            self._note(
                PlatformError(
                    f"host {member.name} was lost{_during(member)}: its connection closed without a word. "
                    "It was killed, or its instance failed: see its log, and start the job again.",
                    origin="everywhere",
                )
            )

    def _part(self, member: Member) -> None:
        if member.wire is not None and not member.is_gone:
            self._epoll.unregister(member.wire.fileno())
            member.wire.close()
        member.is_gone = True

    def _take(self, member: Member, message: Mapping[str, object]) -> None:
        member.heard = self._clock.now()
        match message:
            case {"phase": str(name)}:
                member.phase = name
            case {"arrived": dict(offer)}:
                member.arrived = offer
                count = sum(member.arrived is not None for member in self._members.values())
                log(f"{member.name} is here: {count} of {len(self._members)} hosts.")
            case {"tracker": dict(arguments)}:
                self._send({"tracker": arguments})
                self._inbox.append({"tracker": arguments})
            case {"done": True}:
                member.is_done = True
            case {"failed": dict(failure)}:
                self._note(from_json(failure))
            case {"bye": True}:
                self._part(member)

    def _note(self, error: JobError) -> None:
        self._failures.append((self._clock.now(), error))

    def _connected(self) -> list[Member]:
        return [member for member in self._members.values() if member.wire is not None and not member.is_gone]

    def _silent(self, now: float, seconds: float) -> list[Member]:
        return [member for member in self._connected() if now - member.heard > seconds]

    def _send(self, message: Mapping[str, object]) -> None:
        for member in self._connected():
            if member.wire is not None:
                member.wire.send(message)  # a broken connection shows when it is read

    def _beat(self) -> None:
        now = self._clock.now()
        if now - self._last_beat >= (self.beat or 0):
            self._last_beat = now
            self._send({"beat": True})

    def _judge(self) -> None:
        """Find the verdict, if it is time for one."""
        now = self._clock.now()
        for error in self._causes(now):
            self._verdict = error
            self._send({"abort": error.as_json()})
            self._inbox.append({"abort": error.as_json()})
            for member in self._silent(now, self._limits.silence_timeout / 2):
                self._part(member)  # it can't confirm the verdict, but finds it when it wakes up
            return
        if all(member.is_done for member in self._members.values()):
            if not self._succeeded:
                self._succeeded = True
                self._inbox.append({"leave": True})
        elif not self._called and self._address and all(m.arrived for m in self._members.values()):
            self._called = True
            if all(member.arrived == self._own.arrived for member in self._members.values()):
                self._inbox.append({"lead": self._address})
            else:
                self._note(self._unequal())
        self._tell_news(now)

    def _causes(self, now: float) -> Iterator[JobError]:
        """Yield what ends the job: what is certain comes before what may be a consequence."""
        for _, error in self._failures:
            if error.origin != "elsewhere":
                yield error
        seconds = self._limits.silence_timeout
        for member in self._silent(now, seconds):
            quiet = self._silent(now, seconds / 2)
            if len(quiet) == len(self._connected()):
                yield silence(self._own.name, [member.name for member in quiet], self._limits)
            yield PlatformError(
                f"host {member.name} gave no sign of life for {seconds} s{_during(member)}: it is frozen, or "
                "cut off the network. Start the job again.",
                origin="everywhere",
            )
        if self._failures:
            begin, error = self._failures[0]
            if now - begin > SETTLING and all(member.heard > begin for member in self._connected()):
                yield error
        if not self._called and self._clock.elapsed() > self._limits.start_timeout:
            yield PlatformError(
                f"after start_timeout={self._limits.start_timeout} s not all hosts were here: "
                f"{self._missing()}. Start the job again, or raise start_timeout.",
                origin="everywhere",
            )

    def _unequal(self) -> JobError:
        """Return the failure of hosts that have not the same to offer, with what each has."""
        offers = [
            f"{member.name} ({', '.join(f'{key} {value}' for key, value in (member.arrived or {}).items())})"
            for member in self._members.values()
        ]
        return UserError(
            f"the hosts of a job must be equal, but are {', '.join(offers)}: give all the same instance "
            "type, and show all of them the same number of GPUs.",
            origin="everywhere",
        )

    def _missing(self) -> str:
        parts = [
            f"{m.name} ({'reads its configuration' if m.wire or m is self._own else 'not in touch yet'})"
            for m in self._members.values()
            if not m.arrived
        ]
        if not self._address:
            parts.append(f"{self._own.name} can't be reached yet: {self._not_ready}")
        parts += [f"{address} is not let in, since {OTHER_KEY}" for address in sorted(self._refused)]
        return ", ".join(parts)

    def _tell_news(self, now: float) -> None:
        """Say who is being waited for, once a minute."""
        if now < self._next_news:
            return
        self._next_news = now + NEWS
        if not self._called:
            log(f"Waiting for {self._missing()}.")
            return
        loading = [member.name for member in self._members.values() if member.phase in {"start", "load"}]
        if loading:
            log(f"Still loading: {', '.join(loading)}.")


def silence(host: str, others: list[str], limits: Limits) -> JobError:
    """Return the failure of a host that hears nothing any more, be it deaf or be the others dumb."""
    return PlatformError(
        f"host {host} heard nothing from {', '.join(others)} for {limits.silence_timeout} s: one side is "
        "frozen, or cut off the network. Start the job again.",
        origin="everywhere",
    )


def _namesake(member: Member) -> JobError:
    return UserError(
        f"two processes say that they are host {member.name}: give each host its own name as current_host "
        "in resourceconfig.json, and start it once.",
        origin="everywhere",
    )


def _during(member: Member) -> str:
    return f" in phase {member.phase}" if member.phase else ""
