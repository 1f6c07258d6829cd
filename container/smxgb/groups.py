"""Groups: the rows of one query, which ranking compares with each other, kept together.

XGBoost takes rows of one group for two groups if they come in two batches, or if rows of another stand
between them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.batch import Batch, FloatArray, GroupArray, Role

ROLES: tuple[Role, ...] = ("label", "weight", "group", "lower", "upper")


class Runs:
    """The runs of rows with the same group that were seen so far, in order."""

    def __init__(self) -> None:
        self._runs: list[GroupArray] = []

    def add(self, group: GroupArray) -> None:
        """Take in the groups of the next rows."""
        if len(group):
            self._runs.append(group[starts(group)])

    @property
    def groups(self) -> int:
        """The number of different groups."""
        return len(np.unique(self._all)) if self._runs else 0

    @property
    def are_whole(self) -> bool:
        """Whether no group comes again after another."""
        return not self._runs or len(self._all) == self.groups

    @property
    def _all(self) -> GroupArray:
        runs = np.concatenate(self._runs)
        return runs[starts(runs)]


def starts(group: GroupArray) -> GroupArray:
    """Return the positions at which another group begins than that of the row before."""
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else group


def in_whole_groups(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches again, cut so that no group spans two of them."""
    held: list[Batch] = []
    for batch in batches:
        if batch.group is None or not batch.rows:
            yield batch
            continue
        last = int(starts(batch.group)[-1])
        if last:
            yield joined([*held, sliced(batch, 0, last)])
            held = []
        elif held and held[-1].group is not None and held[-1].group[-1] != batch.group[0]:
            yield joined(held)
            held = []
        held.append(sliced(batch, last, batch.rows))
    if held:
        yield joined(held)


def sliced(batch: Batch, start: int, stop: int) -> Batch:
    """Return some rows of a batch."""
    values: dict[str, Any] = {
        role: array[start:stop] for role in ROLES if (array := getattr(batch, role)) is not None
    }
    return replace(batch, features=batch.features.slice(start, stop - start), dropped=0, **values)


def joined(batches: list[Batch]) -> Batch:
    """Return the rows of several batches as one."""
    if len(batches) == 1:
        return batches[0]
    values: dict[str, Any] = {
        role: np.concatenate([getattr(batch, role) for batch in batches])
        for role in ROLES
        if getattr(batches[0], role) is not None
    }
    features = pa.concat_tables([batch.features for batch in batches]).combine_chunks()
    return replace(batches[0], features=features, **values)


def group_weights(group: GroupArray, weight: FloatArray) -> FloatArray:
    """Return the weight of each group of whole groups, since ranking weighs no single rows.

    Raises UserError if the rows of a group differ in weight.
    """
    found = starts(group)
    repeated = np.repeat(weight[found], np.diff(found, append=len(group)))
    if (repeated != weight).any():
        row = int(np.argmax(repeated != weight))
        raise UserError(
            f"the rows of group {group[row]} have the weights {repeated[row]:g} and {weight[row]:g}: ranking "
            "weighs "
            "groups, so give all rows of a group the same weight."
        )
    return weight[found]
