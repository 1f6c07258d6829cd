"""Empty workers: what a worker without rows of a channel gives XGBoost, since each builds each matrix.

In a channel that is only evaluated it is an empty batch. In `train` it is one row, whose features are missing
and whose weight is so small that no 64-bit sum changes by it. Without a row, XGBoost fails if there are
categories; if there are none, it draws fewer random numbers on this worker, which then trains another model.

XGBoost sums labels in one way with weights and in another way without, and all workers must use the same way:
if a worker is empty, the rows of all others weigh 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.errors import Mistakes
from smxgb.rows.batch import SPARSE, Dense, Sparse
from smxgb.rows.query_groups import QueryGroups
from smxgb.rows.roles import ROLES
from smxgb.rows.store import Stored
from smxgb.settings import OBJECTIVES, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.rows.batch import Batch
    from smxgb.rows.roles import RoleName
    from smxgb.rows.schema import Schema
    from smxgb.rows.summary import Summary
    from smxgb.settings import Hyperparameters

NEXT_TO_NOTHING = 1e-30
"""A weight that is lost beside one of 1, and not 0: XGBoost divides by the weight of a worker's rows."""


def check_empty_workers(empty: Sequence[str], settings: Hyperparameters) -> None:
    """Raise UserError if a row that weighs next to nothing on the `empty` hosts would do harm."""
    if not empty:
        return
    objective = settings.objective
    where = f"channel train has no row for a worker of {', '.join(dict.fromkeys(empty))}"
    cure = "use fewer hosts or workers, or more files"
    mistakes = Mistakes()
    if objective == "reg:absoluteerror":
        mistakes.add(f"{where}: with objective={objective} XGBoost 3.4.1 fails there: {cure}.")
    elif OBJECTIVES[objective].alphas == "quantile_alpha" and settings.base_score is None:
        mistakes.add(
            f"{where}: with objective={objective} XGBoost 3.4.1 can't estimate base_score there: set "
            f"base_score, or {cure}."
        )
    if settings.group_column is not None and kind_of(objective) != "ranking":
        mistakes.add(
            f"{where}: group_column then goes with an objective that ranks only: leave it out, or {cure}."
        )
    mistakes.raise_any()


def with_rows_for_empty_workers(
    stored: Mapping[str, Stored], schema: Schema, rows: Mapping[str, Summary], *, any_empty: bool
) -> dict[str, Stored]:
    """Return this worker's channels, with a batch in those that have no rows here, but on another worker.

    `rows` are those of all workers; `any_empty` says that one of them has none to train on.
    """
    every = {}
    for name, kept in stored.items():
        if kept.rows:
            weighed = name == "train" and any_empty and "weight" not in rows[name].roles
            every[name] = _weighed(kept) if weighed else kept
        elif name == "train" or schema.categories:
            every[name] = _with_one_row(kept, schema, rows[name])
        else:
            every[name] = replace(kept, batches=partial(_batch, schema, rows[name], 0))
    return every


def _with_one_row(kept: Stored, schema: Schema, rows: Summary) -> Stored:
    groups = None
    if "group" in rows.roles:
        one = np.ones(1, np.int64)
        groups = QueryGroups(one, one, np.full(1, NEXT_TO_NOTHING, np.float32))
    return Stored(kept.summary, partial(_batch, schema, rows, 1), groups)


def _weighed(kept: Stored) -> Stored:
    """Return a channel whose rows, or groups, weigh 1."""

    def batches() -> Iterator[Batch]:
        for batch in kept.batches():
            yield replace(batch, roles={**batch.roles, "weight": np.ones(batch.rows, np.float32)})

    groups = kept.groups and replace(kept.groups, weights=np.ones(len(kept.groups.sizes), np.float32))
    return replace(kept, batches=batches, groups=groups)


def _batch(schema: Schema, rows: Summary, count: int) -> Iterator[Batch]:
    """Yield so many rows, all missing, like `rows`: with what they have beside features."""
    highest = rows.label.highest if rows.label else 1.0
    # The label is one that the objective takes. If those of a group are all 0, ndcg counts 1, however light.
    values: Mapping[RoleName, float] = {
        "label": max(highest, 1.0) if "group" in rows.roles else highest,
        "weight": NEXT_TO_NOTHING,
        "group": 1,
        "lower": 1,
        "upper": 1,
    }
    has = {*rows.roles, "weight"} if count else rows.roles
    roles = {
        name: np.full(count, value, ROLES[name].dtype.to_pandas_dtype())
        for name, value in values.items()
        if name in has
    }
    if rows.extent is None:
        yield Dense(_missing(schema, count), roles)
    else:
        features = pa.table([pa.array([[]] * count, field.type) for field in SPARSE], SPARSE)
        yield Sparse(features, roles)


def _missing(schema: Schema, count: int) -> pa.Table:
    columns = {name: pa.nulls(count, pa.float32()) for name in schema.names}
    for name, words in schema.categories.items():
        codes = pa.nulls(count, pa.int32())
        columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))
    return pa.table(columns)
