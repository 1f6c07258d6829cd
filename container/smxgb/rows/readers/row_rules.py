"""The rules that every row is held to, whatever its file: labels, weights, groups, bounds, infinities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.log import log
from smxgb.rows.batch import CELL_BYTES, SPARSE, Dense, Sparse, rows_of_batch
from smxgb.rows.roles import ROLES
from smxgb.wording import printable, shown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from smxgb.job import Channel, DataFile
    from smxgb.rows.batch import Batch, FloatArray
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.roles import Role, RoleName
    from smxgb.rows.schema import Layout

    type Mask = npt.NDArray[np.bool_]

LISTED = 5
"""How many more places of one fault are named."""

FLOAT_GROUPS = (
    "Number the groups with integers: a 32-bit float holds only those below 2^24 exactly, a 64-bit one those "
    "below 2^53."
)
"""The cure for groups in a column of floats."""

EXACT = 2**53
"""Beyond it not even a 64-bit float holds every whole number."""

LARGEST = float(np.finfo(np.float32).max)

EXACT_FLOAT32 = 2**24
"""Up to it float32 holds every whole number."""

ROUNDED = (
    "is a whole number beyond 2^53, of which 32 bits hold the first 7 digits",
    "Subtract a base from all labels or divide them, or name another column with label_column.",
)
"""What is said of a label that is one of many that would become the same number, and the cure."""

INFINITE = (
    "is infinite, or beyond a 32-bit float (3.4e38)",
    "Correct the values, or let them count as missing with infinity=missing.",
)


@dataclass(frozen=True)
class Fault:
    """One kind of mistake in one column: `column` is its position in the record batch, `rows` are indices.

    `empty_complaint` is what is said of a cell without a value.
    """

    column: int
    rows: npt.NDArray[np.int64]
    complaint: str
    cure: str
    empty_complaint: str = ""

    def of_groups(self, roles: tuple[RoleName, ...], cure: str) -> Fault:
        """Return the fault with another cure if it is one of groups; the first columns have `roles`."""
        is_group = self.column < len(roles) and roles[self.column] == "group"
        return replace(self, cure=cure) if is_group else self

    def text(
        self,
        file: str,
        column: str,
        place: tuple[str, Callable[[int], int]],
        value: Callable[[int], str | None],
    ) -> str:
        """Return the sentence for the user.

        `place` is the word for a place in the file and what numbers it; `value` shows a row's cell, None for
        one without a value.
        """
        word, number = place
        first, *others = (number(int(row)) for row in self.rows[: LISTED + 1])
        count = len(self.rows) - 1
        more = ""
        if count:
            listed = ", ".join(str(place) for place in others)
            rest = (
                f" and {count - LISTED:,} more up to {number(int(self.rows[-1]))}" if count > LISTED else ""
            )
            more = f" (so too {word}{'s' if count > 1 else ''} {listed}{rest})"
        cell = value(int(self.rows[0]))
        complaint = self.empty_complaint if cell is None else f"{cell} {self.complaint}"
        return f"{file}, {word} {first}, {column}: {complaint}{more}. {self.cure}"


@dataclass(frozen=True)
class CleanRows:
    """Clean rows: the role columns first, then the features.

    `dropped` rows had no valid label; `infinite` counts the values that became missing, by column.
    """

    data: pa.RecordBatch
    dropped: int
    infinite: Counter[int]


def shown_file(channel: Channel, file: DataFile) -> str:
    """Return a file as messages show it: the channel, and its path below the channel's folder.

    A pipe stands beside that folder, under a name that begins as the channel's.
    """
    if channel.mode == "Pipe":
        return f"pipe {file.path.name}"
    return printable(f"{channel.name}/{file.path.relative_to(channel.folder).as_posix()}")


def row_type(roles: tuple[RoleName, ...]) -> list[pa.Field]:
    """Return the fields of the columns of some roles."""
    return [pa.field(role, ROLES[role].dtype) for role in roles]


def clean(
    data: pa.RecordBatch, roles: tuple[RoleName, ...], settings: ReadingSettings
) -> tuple[CleanRows, tuple[Fault, ...]]:
    """Apply the rules to rows whose first columns have `roles`, all others being features.

    The part is of use only without faults. Rows of faults are those of `data`.
    """
    if settings.coder and "label" in roles:
        place = roles.index("label")
        field = pa.field(data.schema.field(place).name, pa.float32())
        data = data.set_column(place, field, settings.coder.coded(data.column(place)))
    of_roles = dict(zip(roles, data.columns, strict=False))
    invalid = {
        column: mask for column, role in enumerate(roles) if (mask := ROLES[role].invalid(of_roles)).any()
    }
    infinite = _infinite(data, len(roles))
    left_out: Mask | None = None
    if settings.invalid_label == "drop" and "label" in roles:
        left_out = invalid.pop(roles.index("label"), None)
    if left_out is not None:
        invalid = {column: mask & ~left_out for column, mask in invalid.items()}
        infinite = {column: mask & ~left_out for column, mask in infinite.items()}
    faults = [_fault(ROLES[roles[column]], column, mask) for column, mask in invalid.items()]
    if settings.coder:
        faults = [_of_classes(fault) if roles[fault.column] == "label" else fault for fault in faults]
    if settings.infinity == "error":
        faults += [Fault(column, np.flatnonzero(mask), *INFINITE) for column, mask in infinite.items()]
    counts: Counter[int] = Counter()
    for column, mask in infinite.items():
        counts[column] = int(np.count_nonzero(mask))
        values = _without_infinite(data.column(column), mask)
        data = data.set_column(column, data.schema.field(column), values)
    if left_out is None:
        return CleanRows(data, 0, counts), tuple(faults)
    part = CleanRows(data.filter(pa.array(~left_out)), int(np.count_nonzero(left_out)), counts)
    return part, tuple(fault for fault in faults if len(fault.rows))


def as_floats(values: npt.NDArray[Any]) -> FloatArray:
    """Return numbers as 32-bit floats; those that are too large become infinite, which is found later."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)


def whole_numbers(column: pa.Array) -> pa.Array:
    """Return numbers as 64-bit integers, null where a float is a fraction, or so large that it is rounded.

    pandas makes floats of a column of integers in which one was missing, or which it joined.
    """
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    limit = 2.0 ** (np.finfo(column.type.to_pandas_dtype()).nmant + 1)
    column = column.cast(pa.float64())  # Arrow computes with no floats of 16 bits
    exact = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), limit))
    return pc.if_else(exact, column, None).cast(pa.int64())


def is_unrounded(values: Sequence[float]) -> bool:
    """Tell whether the first values of a column lose no digits of whole numbers as 32-bit floats.

    They are no whole numbers, or large ones of which none changes, as 1,024 times a number. Small ones tell
    nothing of those that follow.
    """
    if any(value % 1 for value in values if abs(value) <= LARGEST):
        return True
    large = [value for value in values if EXACT_FLOAT32 < abs(value) <= LARGEST]
    return bool(large) and all(float(np.float32(value)) == value for value in large)


def with_infinities_told(
    parts: Iterable[CleanRows], channel: Channel, columns: Sequence[str]
) -> Iterator[CleanRows]:
    """Yield `parts`; at the end, log the infinite values that became missing, by column.

    `columns` are the columns of the parts as messages show them.
    """
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(part.infinite)
        yield part
    if counts:
        listed = ", ".join(f"{columns[column]} {count:,}" for column, count in counts.most_common(LISTED))
        more = f" and {len(counts) - LISTED} more columns" if len(counts) > LISTED else ""
        total = sum(counts.values())
        log(f"Channel {channel.name}: {total:,} infinite values count as missing: {listed}{more}.")


def shown_columns(layout: Layout) -> list[str]:
    """Return the columns of a part of a table as messages show them, roles first."""
    positions = [*(position for _, position in layout.roles), *layout.features]
    return [shown_column(position, layout.columns) for position in positions]


def merged(
    parts: Iterable[CleanRows], roles: tuple[RoleName, ...], names: tuple[str, ...] | None
) -> Iterator[Batch]:
    """Yield the rows of `parts` in full batches, the last one shorter; `names` None: they are sparse."""
    size = rows_of_batch(len(roles) + len(names)) if names is not None else 0
    held: list[pa.RecordBatch] = []
    rows = dropped = 0
    for part in parts:
        # A part without rows still brings its columns, for a channel of which every row was dropped.
        held.append(part.data)
        rows += part.data.num_rows
        dropped += part.dropped
        if not size and rows:
            size = rows_of_batch(-(-part.data.nbytes // (CELL_BYTES * rows)))
        while size and rows >= size:
            table = pa.Table.from_batches(held)
            yield replace(as_batch(table.slice(0, size), roles, names), dropped=dropped)
            held = table.slice(size).to_batches()
            rows -= size
            dropped = 0
    if rows or dropped:
        yield replace(as_batch(pa.Table.from_batches(held), roles, names), dropped=dropped)


def as_batch(table: pa.Table, roles: tuple[RoleName, ...], names: tuple[str, ...] | None) -> Batch:
    """Return a table, role columns first, as a batch of features called `names`, None if it is sparse."""
    table = table.combine_chunks()
    values = {role: table.column(index).to_numpy() for index, role in enumerate(roles)}
    features = table.select(range(len(roles), table.num_columns))
    if names is None:
        return Sparse(features.rename_columns(SPARSE.names), values)
    return Dense(features.rename_columns(list(names)), values)


def _of_classes(fault: Fault) -> Fault:
    """Return the fault of a label that is missing where labels are words."""
    return replace(
        fault,
        complaint="is not a label: it stands for a missing value",
        empty_complaint="the label is empty",
        cure="Correct these rows, leave them out with invalid_label=drop, or name another column with "
        "label_column.",
    )


def _fault(role: Role, column: int, mask: Mask) -> Fault:
    return Fault(column, np.flatnonzero(mask), role.complaint, role.cure, role.empty_complaint)


def _infinite(data: pa.RecordBatch, first: int) -> dict[int, Mask]:
    """Return the masks of the rows with infinite values of the columns from `first` on that have any.

    A sum is finite unless a value is not: one pass at memory speed clears nearly every column.
    """
    found: dict[int, Mask] = {}
    if not data.num_rows:
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(first, data.num_columns):
            column = data.column(index)
            values = column.flatten() if pa.types.is_list(column.type) else column
            if not len(values) or values.type != pa.float32() or np.isfinite(np.add.reduce(_memory(values))):
                continue
            mask = pc.fill_null(pc.is_inf(values), fill_value=False)
            if values is not column:
                rows = pc.filter(pc.list_parent_indices(column), mask).to_numpy()
                mask = np.isin(np.arange(len(column)), rows)
            else:
                mask = mask.to_numpy(zero_copy_only=False)
            if mask.any():
                found[index] = mask
    return found


def _memory(values: pa.Array) -> npt.NDArray[np.float32]:
    """Return the values as they lie in memory: where one is null, any number may stand."""
    return np.frombuffer(values.buffers()[1], np.float32, len(values), values.offset * CELL_BYTES)


def _without_infinite(column: pa.Array, rows: Mask) -> pa.Array:
    """Return a column in which infinite values are missing; `rows` are those that have one."""
    if not pa.types.is_list(column.type):
        return pc.if_else(pa.array(rows), pa.scalar(None, pa.float32()), column)
    values = column.flatten()
    missing = pa.scalar(float("nan"), pa.float32())
    offsets = pc.subtract(column.offsets, column.offsets[0])
    return pa.ListArray.from_arrays(offsets, pc.if_else(pc.is_inf(values), missing, values))
