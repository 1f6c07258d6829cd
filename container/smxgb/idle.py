"""Idle workers: what a worker without rows of a channel gives XGBoost, since each builds each matrix.

An empty batch does, unless there are categories: then XGBoost takes no worker without a row. Such a worker
gives one row, all missing, that weighs next to nothing: no sum of 64 bits changes by it. XGBoost adds up
labels in one way if there are weights and in another if there are none, and all workers must do the same: so
where one is idle the rows of all others weigh 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.batch import SPARSE, Dense, Sparse
from smxgb.errors import Mistakes
from smxgb.groups import Groups
from smxgb.objectives import kind_of
from smxgb.readers.columns import SETTINGS
from smxgb.store import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.batch import Batch, FloatArray, Role, Schema
    from smxgb.hyperparameters import Hyperparameters
    from smxgb.job import DataSettings
    from smxgb.store import Summary

NEXT_TO_NOTHING = 1e-30
"""A weight that is lost beside one of 1, and not 0: XGBoost divides by the weight of a worker's rows."""


def check_idle(schema: Schema, idle: Sequence[str], settings: Hyperparameters) -> None:
    """Raise UserError if a row that weighs next to nothing on the `idle` hosts would do harm."""
    if not (schema.categories and idle):
        return
    objective = settings.objective
    where = f"channel train has categories and no row on {', '.join(idle)}"
    mistakes = Mistakes()
    if objective == "reg:quantileerror" and settings.base_score is None:
        mistakes.add(
            f"{where}: objective={objective} then needs base_score, which XGBoost would take from each "
            "worker alike. Set it to the quantile of the labels, or use fewer hosts or more files."
        )
    if settings.group_column is not None and kind_of(objective) != "ranking":
        mistakes.add(
            f"{where}: group_column then goes with an objective that ranks only. Leave it out, or use fewer "
            "hosts or more files."
        )
    mistakes.raise_any()


def filled(
    stored: Mapping[str, Stored],
    schema: Schema,
    rows: Mapping[str, Summary],
    settings: DataSettings,
    *,
    with_idle: bool,
) -> dict[str, Stored]:
    """Return this worker's channels, with a batch in those that have no rows here, but on another worker.

    `rows` are those of all workers; `with_idle` says that one of them has none to train on.
    """
    every = {}
    for name, kept in stored.items():
        if not kept.rows:
            every[name] = _without_rows(kept, schema, rows[name], settings)
        elif name == "train" and with_idle and schema.categories and rows[name].weights is None:
            every[name] = _weighed(kept)
        else:
            every[name] = kept
    return every


def _without_rows(kept: Stored, schema: Schema, rows: Summary, settings: DataSettings) -> Stored:
    roles: set[Role] = {
        "label",
        "weight",
        *(role for role in SETTINGS if getattr(settings, role) is not None),
    }
    if schema.layout:
        roles = {role for role, _ in schema.layout.roles}
    if not schema.categories:
        if rows.weights is None:
            roles.discard("weight")
        return Stored(kept.summary, partial(_empty, schema, roles, is_sparse=rows.extent is not None))
    groups = None
    if "group" in roles:
        one = np.ones(1, np.int64)
        groups = Groups(one, one, np.full(1, NEXT_TO_NOTHING, np.float32))
    return Stored(
        kept.summary, partial(_idle, schema, roles, rows.label.highest if rows.label else 1.0), groups
    )


def _weighed(kept: Stored) -> Stored:
    """Return a channel whose rows, or groups, weigh 1."""

    def batches() -> Iterator[Batch]:
        for batch in kept.batches():
            yield replace(batch, weight=np.ones(batch.rows, np.float32))

    groups = kept.groups and replace(kept.groups, weights=np.ones(len(kept.groups.sizes), np.float32))
    return replace(kept, batches=batches, groups=groups)


def _empty(schema: Schema, roles: set[Role], *, is_sparse: bool) -> Iterator[Batch]:
    def of(role: Role) -> FloatArray | None:
        return np.zeros(0, np.float32) if role in roles else None

    group = np.zeros(0, np.int64) if "group" in roles else None
    values = (of("label"), of("weight"), group, of("lower"), of("upper"))
    if is_sparse:
        yield Sparse(SPARSE.empty_table(), *values)
    else:
        yield Dense(pa.table({name: pa.nulls(0, pa.float32()) for name in schema.names}), *values)


def _idle(schema: Schema, roles: set[Role], label: float) -> Iterator[Batch]:
    """Yield one row, whose label is one that the objective takes."""
    columns = {name: pa.nulls(1, pa.float32()) for name in schema.names}
    for name, words in schema.categories.items():
        columns[name] = pa.DictionaryArray.from_arrays(pa.nulls(1, pa.int32()), pa.array(words, pa.string()))
    # Of a group whose labels are all 0, XGBoost's ndcg counts 1 whatever the group weighs.
    given: dict[Role, float] = {
        "label": max(label, 1.0) if "group" in roles else label,
        "lower": 1,
        "upper": 1,
    }
    values = {role: np.full(1, value, np.float32) for role, value in given.items() if role in roles}
    weight = np.full(1, NEXT_TO_NOTHING, np.float32)
    yield Dense(
        pa.table(columns),
        values.get("label"),
        weight,
        np.ones(1, np.int64) if "group" in roles else None,
        values.get("lower"),
        values.get("upper"),
    )
