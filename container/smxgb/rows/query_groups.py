"""Query groups: the queries of a ranking job, each a run of neighbouring rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from smxgb.rows.batch import Batch, FloatArray, GroupArray

    type Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class QueryGroups:
    """The groups of a channel in the order of its rows: how many rows each has, and its weight if it has one.

    `ids` are the numbers that the rows have, each once. XGBoost weighs whole groups, not their rows.
    """

    ids: GroupArray
    sizes: Sizes
    weights: FloatArray | None


class Runs:
    """Collects the groups of a channel while its batches go by; a group may go on in the next batch."""

    def __init__(self) -> None:
        self._ids: list[GroupArray] = []
        self._sizes: list[Sizes] = []
        self._lightest: list[FloatArray] = []
        self._heaviest: list[FloatArray] = []

    def watch(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield `batches`, taking in the groups of their rows."""
        for batch in batches:
            if "group" in batch.roles and batch.rows:
                self._take(batch.roles["group"], batch.roles.get("weight"))
            yield batch

    def _take(self, group: GroupArray, weight: FloatArray | None) -> None:
        starts = _starts(group)
        self._ids.append(group[starts])
        self._sizes.append(np.diff(starts, append=len(group)))
        if weight is not None:
            self._lightest.append(np.minimum.reduceat(weight, starts))
            self._heaviest.append(np.maximum.reduceat(weight, starts))

    @property
    def are_whole(self) -> bool:
        """Whether the rows of each group stand together: XGBoost would take others for several groups."""
        if not self._ids:
            return True
        ids = np.concatenate(self._ids)
        ids = ids[_starts(ids)]
        return len(np.unique(ids)) == len(ids)

    def groups(self, channel: str) -> QueryGroups | None:
        """Return the groups of the batches that went by, None if their rows have none; they must be whole.

        Raises UserError if the rows of a group do not weigh the same.
        """
        if not self._ids:
            return None
        ids = np.concatenate(self._ids)
        starts = _starts(ids)
        ids, sizes = ids[starts], np.add.reduceat(np.concatenate(self._sizes), starts)
        if not self._lightest:
            return QueryGroups(ids, sizes, None)
        lightest = np.minimum.reduceat(np.concatenate(self._lightest), starts)
        heaviest = np.maximum.reduceat(np.concatenate(self._heaviest), starts)
        uneven = np.flatnonzero(lightest != heaviest)
        if len(uneven):
            first = uneven[0]
            raise UserError(
                f"channel {channel}: the rows of group {ids[first]} have weights from {lightest[first]:g} to "
                f"{heaviest[first]:g}. XGBoost weighs whole groups: give all rows of a group the same weight."
            )
        return QueryGroups(ids, sizes, lightest)


def _starts(ids: GroupArray) -> npt.NDArray[np.intp]:
    """Return where runs of one value begin."""
    return np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
