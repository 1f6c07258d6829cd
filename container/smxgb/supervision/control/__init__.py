"""The control channel between the supervisors of a job's hosts.

XGBoost's own group does not know which hosts are missing, does not notice a frozen host, and reports a dead
one only as a failed operation. So each supervisor keeps a connection with the supervisor of the first host,
the leader. It carries the roll-call, signs of life, the address of the tracker, the cause of a failure, and
at the end the message that the model is saved.

`Control` is the interface of one supervisor's end. There are three: `Leader` on the first host, `Follower` on
each other one, and `Alone` in a job with one host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from smxgb import __version__
from smxgb.supervision.control.restarts import Restarts
from smxgb.supervision.messages import Abort, Arrived, Lead, Leave, Rendezvous, RoundDone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.environment import Hosts
    from smxgb.errors import JobError
    from smxgb.limits import Limits
    from smxgb.supervision.messages import Message


VERSION = "the version of smxgb"
"""What messages call what no hyperparameter can be called."""

LOOPBACK = "127.0.0.1"
"""The address at which the processes of a job with one host meet: they need no network."""


class Control(Protocol):
    """A supervisor's end of the control channel.

    The work counts as frozen after `silence` seconds without a sign of life. `hear` must be called at least
    every `beat` seconds, which is None in a job with one host, where nobody waits for this one.
    """

    silence: float
    beat: float | None

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when there is something to hear, None if there never is."""

    def tell(self, message: Message) -> None:
        """Pass on what the work says: `PhaseBegins`, `Arrived`, `Rendezvous`, `RoundDone`."""

    def done(self) -> None:
        """Say that this host's work has succeeded."""

    def fail(self, error: JobError) -> None:
        """Say that this host's work has failed."""

    def stop(self) -> None:
        """Say that this host is being stopped, and has only seconds left."""

    def hear(self) -> list[Message]:
        """Do what is due, such as a sign of life, and return what the leader says.

        `Lead` and `Rendezvous` are for the work. `Restart` says that it is to be started again. `Abort` and
        `Leave` are the verdict on the job.
        """

    def close(self) -> None:
        """Close the connections with the other hosts. This process ends next."""


class Alone:
    """The control of a job with one host: the end of its work is the verdict."""

    def __init__(self, limits: Limits) -> None:
        self.silence: float = limits.silence_timeout
        self.beat: float | None = None
        self._inbox: list[Message] = []
        self._restarts = Restarts(limits.max_restarts)

    def fileno(self) -> int | None:
        """Return None: there is no other host."""
        return None

    def tell(self, message: Message) -> None:
        """Let the work begin once it has arrived, and tell it where its processes meet."""
        match message:
            case Arrived():
                self._inbox.append(Lead(LOOPBACK, (LOOPBACK,), self._restarts.attempt))
            case Rendezvous():
                self._inbox.append(message)
            case RoundDone():
                self._restarts.round = message.number

    def done(self) -> None:
        """Note the success."""
        self._inbox.append(Leave())

    def fail(self, error: JobError) -> None:
        """Note the failure: the work begins again, or the job ends."""
        restart = self._restarts.restart(error)
        self._inbox.append(restart or Abort(self._restarts.explained(error)))

    def stop(self) -> None:
        """Do nothing: no other host needs to know."""

    def hear(self) -> list[Message]:
        """Return what there is for the work, and the verdict."""
        heard, self._inbox = self._inbox, []
        return heard

    def close(self) -> None:
        """Do nothing: there are no connections."""


def join_hosts(
    hosts: Hosts,
    job: str | None,
    hyperparameters: Mapping[str, object],
    limits: Limits,
    secret: str | None = None,
) -> Control:
    """Return this host's end of the control channel.

    Other hosts may connect later. All must have the same job name or ARN, hosts and `secret`, for their key
    is made of these; and the same hyperparameters and version of this package, or the job fails.
    """
    if len(hosts.names) == 1:
        return Alone(limits)
    # Imported only here: most jobs have one host, and start faster without them.
    from smxgb.supervision.control.follower import Follower  # noqa: PLC0415
    from smxgb.supervision.control.leader import Leader  # noqa: PLC0415
    from smxgb.supervision.control.wire import digests, make_key  # noqa: PLC0415

    role = Leader if hosts.current == hosts.names[0] else Follower
    key = make_key(job, hosts, secret)
    return role(hosts, limits, key, digests(key, {VERSION: __version__, **hyperparameters}))
