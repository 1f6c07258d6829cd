"""The first host's end of the control channel: it calls the roll and finds the verdict on the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import JobError
from smxgb.limits import beat_of
from smxgb.log import log
from smxgb.supervision.control.clock import Clock, Interval
from smxgb.supervision.control.connections import Connections
from smxgb.supervision.control.failures import (
    OTHER_KEY,
    absent,
    differing,
    heard_nothing,
    lost,
    namesake,
    shorten,
    silent,
    unequal,
)
from smxgb.supervision.control.listener import Door, Guest
from smxgb.supervision.control.restarts import Restarts
from smxgb.supervision.control.wire import NEWS, PATIENCE
from smxgb.supervision.messages import (
    Abort,
    Arrived,
    Beat,
    Bye,
    Done,
    Failed,
    Lead,
    Leave,
    PhaseBegins,
    Rendezvous,
    Restarting,
    RoundDone,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.limits import Limits
    from smxgb.supervision.control.wire import Wire
    from smxgb.supervision.messages import Message, Restart

SETTLING = 2.0
"""Seconds to wait for a better cause, when a failure may be the consequence of another host's."""


@dataclass
class Member:
    """What the leader knows of a host.

    `address` is that from which it has connected. `heard` is when it last gave a sign of life, by the
    leader's clock. `offer` is None before it has arrived. While it `is_behind`, it has not heard of a restart
    yet, and what it says is of the work that has ended.
    """

    name: str
    wire: Wire | None = None
    address: str | None = None
    heard: float = 0.0
    phase: str | None = None
    offer: Mapping[str, str | int] | None = None
    is_done: bool = False
    is_gone: bool = False
    is_behind: bool = False


class Leader:
    """The first host's end of the control channel; see `smxgb.supervision.control.Control`."""

    def __init__(self, hosts: Hosts, limits: Limits, key: bytes, has: Mapping[str, str | int]) -> None:
        self._limits = limits
        self._has = has
        self.silence: float = limits.silence_timeout
        self.beat: float | None = beat_of(limits.silence_timeout)
        self._members = {name: Member(name) for name in hosts.names}
        self._own = self._members[hosts.current]
        self._inbox: list[Message] = []
        self._failures: list[tuple[float, JobError]] = []
        self._verdict: JobError | None = None
        self._is_complete = self._has_succeeded = self._is_stopped = False
        self._restarts = Restarts(limits.max_restarts)
        self._roll_begin = 0.0
        self._clock = Clock()
        self._beats = Interval(beat_of(limits.silence_timeout))
        self._news = Interval(NEWS, first=min(NEWS, limits.start_timeout / 2))
        self._connections = Connections[Guest]()
        self._door = Door(hosts, limits, key, self._connections)

    def fileno(self) -> int | None:
        """Return what is readable when a host says something."""
        return self._connections.fileno()

    def tell(self, message: Message) -> None:
        """Take in what this host's own work says."""
        self._take(self._own, message)

    def done(self) -> None:
        """Note that this host's work is done, and so the model is saved."""
        self._own.is_done = True

    def fail(self, error: JobError) -> None:
        """Note the failure of this host's work."""
        self._note(shorten(error, self._own.name))

    def stop(self) -> None:
        """Note that there is no time to wait for hosts that have not connected yet."""
        self._is_stopped = True

    def hear(self) -> list[Message]:
        """Take in what all hosts have said, judge it, and return what this host has to do."""
        self._listen()
        self._own.heard = self._clock.now()
        self._beat()
        if self._verdict is None:
            self._judge()
        heard, self._inbox = self._inbox, []
        return heard

    def close(self) -> None:
        """Send the verdict to all hosts, those that connect too late included, until all have confirmed it.

        A host has some seconds for that.
        """
        if self._has_succeeded and self._verdict is None:
            self._send(Leave())
        begin = self._clock.elapsed()
        connect_until = min(begin + self._limits.silence_timeout, self._limits.start_timeout)
        if self._is_stopped:
            connect_until = begin
        while self._is_awaited(begin + PATIENCE, connect_until):
            self._connections.wait(beat_of(self._limits.silence_timeout))
            self._listen()
            self._beat()

    def _is_awaited(self, answer_until: float, connect_until: float) -> bool:
        """Return whether a host may still confirm the verdict, or connect and hear it."""
        now = self._clock.elapsed()
        others = [member for member in self._members.values() if member is not self._own]
        return any(
            not member.is_gone and now < (answer_until if member.wire else connect_until) for member in others
        )

    def _listen(self) -> None:
        for opened in self._connections.take_opened():
            if isinstance(opened, JobError):
                self._note(opened)
            else:
                self._admit(opened)
        for member in self._members.values():
            if wire := _wire_of(member):
                self._read(member, wire)

    def _admit(self, guest: Guest) -> None:
        member = self._members[guest.hello.host]
        if member.wire is not None:
            guest.wire.send(Abort(namesake(member.name)))
            guest.wire.close()
            log(f"A second process that says it is {member.name} is not let in.")
            return
        member.wire, member.address = guest.wire, guest.address
        self._connections.add(guest.wire)
        for message in guest.messages:
            self._take(member, message)
        if self._verdict is not None:
            guest.wire.send(Abort(self._verdict))
        elif unlike := {name for name, _ in self._has.items() ^ guest.hello.has.items()}:
            self._note(differing(member.name, self._own.name, unlike))

    def _read(self, member: Member, wire: Wire) -> None:
        messages, is_open = wire.receive()
        for message in messages:
            self._take(member, message)
        if not is_open and not member.is_gone:
            self._part(member)
            self._note(lost(member.name, member.phase))

    def _part(self, member: Member) -> None:
        """Close the connection with a host, which is gone for the leader from now on."""
        if wire := _wire_of(member):
            self._connections.remove(wire)
            wire.close()
        member.is_gone = True

    def _take(self, member: Member, message: Message) -> None:
        """Take in what a host has said."""
        member.heard = self._clock.now()
        if isinstance(message, Restarting):
            member.is_behind = message.attempt != self._restarts.attempt
        elif not member.is_behind or isinstance(message, Bye):
            self._take_in_time(member, message)

    def _take_in_time(self, member: Member, message: Message) -> None:
        match message:
            case RoundDone():
                self._restarts.round = message.number
            case PhaseBegins():
                member.phase = message.name
            case Arrived():
                member.offer = message.offer
                count = sum(member.offer is not None for member in self._members.values())
                log(f"{member.name} is here: {count} of {len(self._members)} hosts.")
            case Rendezvous():
                self._send(message)
                self._inbox.append(message)
            case Done():
                member.is_done = True
            case Failed():
                self._note(message.error)
            case Bye():
                self._part(member)

    def _note(self, error: JobError) -> None:
        self._failures.append((self._clock.now(), error))

    def _connected(self) -> list[Member]:
        return [member for member in self._members.values() if _wire_of(member)]

    def _silent(self, now: float, seconds: float) -> list[Member]:
        return [member for member in self._connected() if now - member.heard > seconds]

    def _send(self, message: Message) -> None:
        """Send a message to all other hosts. A broken connection is noticed when it is read."""
        for member in self._members.values():
            if wire := _wire_of(member):
                wire.send(message)

    def _beat(self) -> None:
        if self._beats.begin_next(self._clock.now()):
            self._send(Beat())

    def _judge(self) -> None:
        """Find the verdict, or call the roll, if it is time for it."""
        now = self._clock.now()
        if error := next(self._causes(now), None):
            self._abort(error, now)
            return
        if all(member.is_done for member in self._members.values()):
            if not self._has_succeeded:
                self._has_succeeded = True
                self._inbox.append(Leave())
        elif not self._is_complete:
            self._call_roll()
        self._tell_news(now)

    def _abort(self, error: JobError, now: float) -> None:
        """Make a failure the verdict and tell it to all hosts, unless the work is to be started again."""
        # A host that is not connected would not hear of it.
        can_hear = all(member is self._own or _wire_of(member) for member in self._members.values())
        if can_hear and not self._has_succeeded and (restart := self._restarts.restart(error)):
            self._restart(restart)
            return
        error = self._restarts.explained(error)
        self._verdict = error
        self._send(Abort(error))
        self._inbox.append(Abort(error))
        for member in self._silent(now, self._limits.silence_timeout / 2):
            self._part(member)  # it can't confirm the verdict, and will find the connection closed

    def _restart(self, restart: Restart) -> None:
        """Have all hosts start the work again, and forget what they have said of the work that has ended."""
        self._send(restart)
        self._inbox = [restart]
        self._failures = []
        self._is_complete = False
        self._roll_begin = self._clock.elapsed()
        for member in self._members.values():
            member.phase = member.offer = None
            member.is_done = False
            member.is_behind = member is not self._own

    def _call_roll(self) -> None:
        """Let the work begin if all hosts have arrived and are equal."""
        offers = {member.name: member.offer for member in self._members.values() if member.offer}
        if self._door.address is None or len(offers) < len(self._members):
            return
        self._is_complete = True
        if all(offer == self._own.offer for offer in offers.values()):
            others = (member.address for member in self._members.values() if member.address)
            self._inbox.append(
                Lead(self._door.address, (self._door.address, *others), self._restarts.attempt)
            )
        else:
            self._note(unequal(offers))

    def _causes(self, now: float) -> Iterator[JobError]:
        """Yield what ends the job. What is certain comes before what may be the consequence of something."""
        for _, error in self._failures:
            if error.origin != "elsewhere":
                yield error
        seconds = self._limits.silence_timeout
        for member in self._silent(now, seconds):
            quiet = self._silent(now, seconds / 2)
            if len(quiet) == len(self._connected()):
                yield heard_nothing(self._own.name, [member.name for member in quiet], self._limits)
            yield silent(member.name, member.phase, self._limits)
        if self._failures:
            begin, error = self._failures[0]
            if now - begin > SETTLING and all(member.heard > begin for member in self._connected()):
                yield error
        if not self._is_complete and self._clock.elapsed() - self._roll_begin > self._limits.start_timeout:
            yield absent(self._missing(), self._limits)

    def _missing(self) -> str:
        """Return which hosts have not arrived, and what keeps each."""
        parts = [
            f"{m.name} ({'reads its configuration' if m.wire or m is self._own else 'not in touch yet'})"
            for m in self._members.values()
            if not m.offer
        ]
        if not self._door.address:
            parts.append(f"{self._own.name} can't be reached yet: {self._door.not_ready}")
        parts += [f"{address} is not let in, since {OTHER_KEY}" for address in sorted(self._door.refused)]
        return ", ".join(parts)

    def _tell_news(self, now: float) -> None:
        """Log which hosts are being waited for, once a minute."""
        if not self._news.begin_next(now):
            return
        if not self._is_complete:
            log(f"Waiting for {self._missing()}.")
            return
        loading = [member.name for member in self._members.values() if member.phase in {"start", "load"}]
        if loading:
            log(f"Still loading: {', '.join(loading)}.")


def _wire_of(member: Member) -> Wire | None:
    """Return the open connection with a host, None if there is none."""
    return None if member.is_gone else member.wire
