"""Restarts: how often the work of a job is started again, when a process of it has died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.supervision.messages import Restart

if TYPE_CHECKING:
    from smxgb.errors import JobError


class Restarts:
    """Decides whether a failure ends the job, or only its present attempt. `most` is how many may follow.

    A process that was killed, crashed or froze may run the next time. So may one that has only seen another
    fail. A round that ends two attempts would end a third. A lack of memory may pass with less need of it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._earlier: list[JobError] = []
        self._failed_at: int | None = None
        self.round: int | None = None

    @property
    def attempt(self) -> int:
        """How often the work was started again."""
        return len(self._earlier)

    def restart(self, error: JobError) -> Restart | None:
        """Return the restart that a failure leads to, None if it ends the job."""
        may_pass = error.may_pass or error.origin == "elsewhere"
        is_known = self.attempt > 0 and self.round is not None and self.round == self._failed_at
        is_same_round = is_known and not error.wants_memory
        if not may_pass or self.attempt >= self._most or is_same_round:
            return None
        self._earlier.append(error)
        self._failed_at, self.round = self.round, None
        return Restart(error, self.attempt)

    def explained(self, error: JobError) -> JobError:
        """Return the failure that ends the job, with those that have ended earlier attempts."""
        if not self._earlier:
            return error
        first, *others = error.mistakes
        before = "; ".join(each.mistakes[0].rstrip(".") for each in self._earlier)
        times = "once" if self.attempt == 1 else f"{self.attempt} times"
        return type(error)(
            f"{first} The work had been started again {times} before, after this: {before}.",
            *others,
            exit_code=error.exit_code,
            origin=error.origin,
            more=error.more,
        )
