"""The control channel between the supervisors of a job's hosts.

XGBoost's own group can't tell who is missing, notices no frozen host, and says of a dead one only that an
operation failed. So the supervisors keep a connection each to the one on the first host, the leader. Over it
go the roll-call, signs of life, the tracker's address, the cause of a failure, and at the end the word that
the model is safe.

A supervisor sees one of three ends of it, all with the same face, `Control`: it tells what its own work says,
and hears what the leader has to say, be it at the other end of the network or in the same process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from smxgb.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.environment import Hosts
    from smxgb.errors import JobError


class Control(Protocol):
    """A supervisor's end of the control channel.

    `silence` is after how many seconds without a sign of life the work counts as frozen, `beat` how often to
    turn; both are None where nobody waits for this host.
    """

    silence: float | None
    beat: float | None

    def fileno(self) -> int | None:
        """Return a descriptor that can be read when there is something to hear, if there ever is."""

    def tell(self, message: Mapping[str, object]) -> None:
        """Say what the work says: `{"phase": name}`, `{"arrived": offer}`, `{"tracker": arguments}`."""

    def done(self) -> None:
        """Say that this host's work has succeeded."""

    def fail(self, error: JobError) -> None:
        """Say that this host's work has failed."""

    def stop(self) -> None:
        """Say that this host is being stopped: who does that waits for seconds only."""

    def hear(self) -> list[Mapping[str, object]]:
        """Do what is due and return what the leader says.

        `{"lead": address}`: start the tracker; `{"tracker": arguments}`: join the group; `{"abort":
        failure}`: end now, for this reason; `{"leave": true}`: the model is safe.
        """

    def close(self) -> None:
        """Part from the other hosts, the last thing before this process ends."""


class Alone:
    """The control of a job with one host: what its work says is the verdict."""

    def __init__(self) -> None:
        self.silence: float | None = None
        self.beat: float | None = None
        self._inbox: list[Mapping[str, object]] = []

    def fileno(self) -> int | None:
        """Return None: there is nobody to hear from."""
        return None

    def tell(self, message: Mapping[str, object]) -> None:
        """Pass on how the work's parts meet; nobody else needs to know anything."""
        if "tracker" in message:
            self._inbox.append(message)

    def done(self) -> None:
        """Note the success."""
        self._inbox.append({"leave": True})

    def fail(self, error: JobError) -> None:
        """Note the failure."""
        self._inbox.append({"abort": error.as_json()})

    def stop(self) -> None:
        """Nobody is waited for."""

    def hear(self) -> list[Mapping[str, object]]:
        """Return the verdict, once."""
        heard, self._inbox = self._inbox, []
        return heard

    def close(self) -> None:
        """There is nobody to part from."""


def join_hosts(hosts: Hosts, job: str | None, hyperparameters: Mapping[str, object]) -> Control:
    """Return this host's end of the control channel.

    Other hosts may come later. To be let in they must have in common the job's name or ARN, the hosts and the
    hyperparameters, as they stand in SageMaker's files.
    """
    if len(hosts.names) == 1:
        return Alone()
    # Only here: most jobs have one host, and their start needs no sockets.
    from smxgb.supervision.control.follower import Follower  # noqa: PLC0415
    from smxgb.supervision.control.leader import Leader  # noqa: PLC0415
    from smxgb.supervision.control.wire import make_key  # noqa: PLC0415

    role = Leader if hosts.current == hosts.names[0] else Follower
    return role(hosts, Limits.read(hyperparameters), make_key(job, hosts, hyperparameters))
