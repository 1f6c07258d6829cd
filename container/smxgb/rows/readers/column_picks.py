"""Column picks: features that a setting gives a role or drops, in formats without names of columns.

Such a feature keeps its index, so that rows to predict later have the indices of the files; its value is
missing in every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.errors import Mistakes, UserError
from smxgb.rows.batch import SPARSE
from smxgb.rows.columns import check_partitions, index_of
from smxgb.rows.readers.row_rules import as_floats, whole_numbers
from smxgb.rows.roles import ROLES

if TYPE_CHECKING:
    from smxgb.job import Name
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.roles import RoleName
    from smxgb.settings import ColumnRef


@dataclass(frozen=True)
class ColumnPicks:
    """The indices of features, as the files count, that have a role, and of those that are left out."""

    roles: tuple[tuple[RoleName, int], ...]
    dropped: tuple[int, ...]

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.roles or self.dropped)

    @property
    def indices(self) -> list[int]:
        """All of them."""
        return [*(index for _, index in self.roles), *self.dropped]


def column_picks(
    settings: ReadingSettings, roles: tuple[RoleName, ...], channel: Name, source: str
) -> ColumnPicks:
    """Return what the settings pick from files whose rows have `roles` of their own.

    `source` is the channel's first file as messages show it. Raises UserError for settings that such files
    can't follow, and for columns that only the names of folders hold.
    """
    mistakes = Mistakes()
    with mistakes.collect():
        check_partitions(channel, None, settings)
    found: list[tuple[RoleName, int]] = []
    for role in (name for name in ROLES if name in settings.columns):
        ref, setting = settings.columns[role], ROLES[role].setting
        if role in roles:
            mistakes.add(f"{setting}={ref}: the rows of {source} have a {role} of their own: leave it out.")
            continue
        with mistakes.collect():
            found.append((role, _index(setting, ref, source)))
    dropped = []
    for ref in (ref for ref in settings.drop if ref not in settings.absent):
        with mistakes.collect():
            dropped.append(_index("drop_columns", ref, source))
    if settings.categorical:
        mistakes.add(
            f"categorical_columns: {source} holds numbers only: leave it out, or give the channel as CSV or "
            "Parquet."
        )
    mistakes.raise_any()
    return ColumnPicks(tuple(found), tuple(dropped))


def from_sparse(data: pa.RecordBatch, picks: ColumnPicks) -> pa.RecordBatch:
    """Return sparse rows, whose last two columns are indices and values, with what is picked from them.

    Its values are missing from then on, and its indices stay: the lowest and the highest one of all rows tell
    where features begin and how many there are. A group keeps the type that the values have.
    """
    indices, values = data.column("indices"), data.column("values")
    rows = pc.list_parent_indices(indices).to_numpy()
    flat_indices = indices.flatten().to_numpy()
    flat_values = values.flatten().to_numpy()
    others = data.select(range(data.num_columns - len(SPARSE)))
    arrays, fields = list(others.columns), list(others.schema)
    for role, index in picks.roles:
        found = np.flatnonzero(flat_indices == index)
        places = np.full(data.num_rows, -1)
        places[rows[found]] = found
        column = pc.take(pa.array(flat_values), pa.array(places, mask=places < 0))
        arrays.append(_as_role(role, column))
        fields.append(pa.field(role, arrays[-1].type))
    left = np.where(np.isin(flat_indices, picks.indices), np.float32(np.nan), as_floats(flat_values))
    arrays += [indices, pa.ListArray.from_arrays(indices.offsets, pa.array(left))]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *SPARSE]))


def from_dense(data: pa.RecordBatch, picks: ColumnPicks, width: int, source: str) -> pa.RecordBatch:
    """Return dense rows, whose last `width` columns are features, with what is picked from them.

    A group keeps the type that the features have. Raises UserError for an index that is beyond them.
    """
    first = data.num_columns - width
    for index in picks.indices:
        if index >= width:
            raise UserError(f"{source} has {width} features, 0 to {width - 1}; a setting names {index}.")
    features = data.columns[first:]
    roles = [_as_role(role, features[index]) for role, index in picks.roles]
    fields = [pa.field(role, column.type) for (role, _), column in zip(picks.roles, roles, strict=True)]
    for index, column in enumerate(features):
        is_picked = index in picks.indices
        features[index] = pa.nulls(data.num_rows, pa.float32()) if is_picked else _floats(column)
    names = data.schema.names[first:]
    fields = [*list(data.schema)[:first], *fields, *(pa.field(name, pa.float32()) for name in names)]
    return pa.RecordBatch.from_arrays([*data.columns[:first], *roles, *features], schema=pa.schema(fields))


def numbered(data: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with their groups, if they have any, as integers; null where the number is not exact."""
    place = data.schema.get_field_index("group")
    if place < 0:
        return data
    return data.set_column(place, pa.field("group", pa.int64()), whole_numbers(data.column(place)))


def _index(setting: str, ref: ColumnRef, source: str) -> int:
    index = index_of(ref)
    if index is None or index < 0:
        raise UserError(f"{setting}={ref}: {source} has no names: give a feature's index as it stands there.")
    return index


def _as_role(role: RoleName, column: pa.Array) -> pa.Array:
    return column if pa.types.is_integer(ROLES[role].dtype) else _floats(column)


def _floats(column: pa.Array) -> pa.Array:
    return column.cast(pa.float32(), safe=False)
