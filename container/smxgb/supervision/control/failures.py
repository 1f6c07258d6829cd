"""The failures that the supervisors find when hosts are absent, silent, lost or unequal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.errors import JobError, PlatformError, UserError
from smxgb.log import log_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smxgb.limits import Limits

OTHER_KEY = "its key is another job's, so its job name, hosts or SMXGB_JOB_SECRET differ from this host's"


def shorten(error: JobError, host: str) -> JobError:
    """Return the failure of a host as it is sent to the others. Log all of it if they get only a part."""
    sent = error.of_host(host)
    if sent.more:
        for line in error.lines():
            log_error(line)
    return sent


def heard_nothing(host: str, others: Iterable[str], limits: Limits) -> JobError:
    """Return the failure of a host that hears none of the others, and can't know which side is cut off."""
    return _of_all(
        f"host {host} heard nothing from {', '.join(others)} for {limits.silence_timeout} s: one side is "
        "frozen, or cut off the network. Start the job again."
    )


def silent(host: str, phase: str | None, limits: Limits) -> JobError:
    """Return the failure of one host that the leader does not hear any more."""
    return _of_all(
        f"host {host} gave no sign of life for {limits.silence_timeout} s{_during(phase)}: it is frozen, or "
        "cut off the network. Start the job again."
    )


def lost(host: str, phase: str | None) -> JobError:
    """Return the failure of a host whose connection with the leader has closed."""
    return _of_all(
        f"host {host} was lost{_during(phase)}: its connection closed without a word. It was killed, or its "
        "instance failed: see its log, and start the job again."
    )


def lost_leader(leader: str) -> JobError:
    """Return the failure of a leader that has closed a connection before its verdict."""
    return _of_all(
        f"host {leader} was lost before it had saved the model: its connection closed without a word. It was "
        "killed, or its instance failed: see its log, and start the job again."
    )


def unreachable_leader(leader: str, reason: str, limits: Limits) -> JobError:
    """Return the failure of a leader with which no connection was possible."""
    return _of_all(
        f"host {leader} could not be reached at port {limits.control_port} within "
        f"start_timeout={limits.start_timeout} s: {reason}. Start the job again."
    )


def closed_port(host: str, reason: str, limits: Limits) -> JobError:
    """Return the failure of a leader that can't listen."""
    return _of_all(
        f"port {limits.control_port} of {host}, the control channel's, can't be opened: {reason}. "
        "Set control_port."
    )


def absent(missing: str, limits: Limits) -> JobError:
    """Return the failure of hosts that have not arrived in time."""
    return _of_all(
        f"after start_timeout={limits.start_timeout} s not all hosts were here: {missing}. Start the job "
        "again, or raise start_timeout."
    )


def unequal(offers: Mapping[str, Mapping[str, str | int]]) -> JobError:
    """Return the failure of hosts that differ in what they offer."""
    shown = [
        f"{host} ({', '.join(f'{key} {value}' for key, value in offer.items())})"
        for host, offer in offers.items()
    ]
    return UserError(
        f"the hosts of a job must be equal, but are {', '.join(shown)}: give all the same instance type, and "
        "show all of them the same number of GPUs.",
        origin="everywhere",
    )


def differing(host: str, leader: str, names: Iterable[str]) -> JobError:
    """Return the failure of a host that does not have what the leader has, in what has these names."""
    return UserError(
        f"host {host} differs from host {leader} in {', '.join(sorted(names))}: give all hosts of a job the "
        "same hyperparameters, and the same image.",
        origin="everywhere",
    )


def namesake(host: str) -> JobError:
    """Return the failure of a second process that says it is this host."""
    return UserError(
        f"two processes say that they are host {host}: give each host its own name as current_host in "
        "resourceconfig.json, and start it once.",
        origin="everywhere",
    )


def _of_all(text: str) -> JobError:
    return PlatformError(text, origin="everywhere")


def _during(phase: str | None) -> str:
    return f" in phase {phase}" if phase else ""
