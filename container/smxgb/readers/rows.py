"""The rules that every row is held to, whatever its file: labels, weights, groups, bounds, infinities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.batch import CELL_BYTES, Dense, Role, rows_of_batch
from smxgb.progress import log
from smxgb.readers.columns import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from smxgb.batch import Layout
    from smxgb.channels import Channel, DataFile
    from smxgb.job import DataSettings

    type Mask = npt.NDArray[np.bool_]

LISTED = 5
"""How many more places of one fault are named."""

RULES: dict[Role, tuple[str, str]] = {
    "label": (
        "is not a label: a finite number is needed",
        "Mend these rows, leave them out with invalid_label=drop, or name another column with label_column.",
    ),
    "weight": ("is not a weight: a finite number, 0 or more, is needed", "Mend these rows."),
    "group": ("is not a group: an integer is needed", "Number the groups."),
    "lower": ("is not a lower bound: a number or -inf is needed", "Mend these rows."),
    "upper": (
        "is not an upper bound: a number above 0 and not below the lower bound, or inf, is needed",
        "Mend these rows.",
    ),
}
INFINITE = (
    "is infinite, or beyond a 32-bit float (3.4e38)",
    "Mend the values, or let them count as missing with infinity=missing.",
)


@dataclass(frozen=True)
class Fault:
    """One kind of mistake in one column: `column` is its position in the record batch, `rows` are indices."""

    column: int
    rows: npt.NDArray[np.int64]
    complaint: str
    cure: str

    def text(
        self, file: str, column: str, place: tuple[str, Callable[[int], int]], value: Callable[[int], str]
    ) -> str:
        """Return the sentence for the user.

        `place` is the word for a place in the file and what numbers it; `value` shows a row's cell.
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
        return f"{file}, {word} {first}, {column}: {cell} {self.complaint}{more}. {self.cure}"


@dataclass(frozen=True)
class Part:
    """Clean rows: the role columns first, then the features.

    `dropped` rows had no valid label; `infinite` counts the values that became missing, by column.
    """

    data: pa.RecordBatch
    dropped: int
    infinite: Counter[int]


def shown_file(channel: Channel, file: DataFile) -> str:
    """Return a file as messages show it: the channel, and its path below the channel's folder."""
    return f"{channel.name}/{file.path.relative_to(channel.folder).as_posix()}"


def clean(
    data: pa.RecordBatch, roles: tuple[Role, ...], settings: DataSettings
) -> tuple[Part, tuple[Fault, ...]]:
    """Apply the rules to rows whose first columns have `roles`, all others being float32 features.

    The part is of use only without faults. Rows of faults are those of `data`.
    """
    lower = data.column(roles.index("lower")) if "lower" in roles else None
    invalid = {
        column: mask
        for column, role in enumerate(roles)
        if (mask := _invalid(role, data.column(column), lower)).any()
    }
    infinite = _infinite(data, len(roles))
    left_out: Mask | None = None
    if settings.invalid_label == "drop" and "label" in roles:
        left_out = invalid.pop(roles.index("label"), None)
    if left_out is not None:
        invalid = {column: mask & ~left_out for column, mask in invalid.items()}
        infinite = {column: mask & ~left_out for column, mask in infinite.items()}
    faults = [Fault(column, np.flatnonzero(mask), *RULES[roles[column]]) for column, mask in invalid.items()]
    if settings.infinity == "error":
        faults += [Fault(column, np.flatnonzero(mask), *INFINITE) for column, mask in infinite.items()]
    counts: Counter[int] = Counter()
    for column, mask in infinite.items():
        counts[column] = int(np.count_nonzero(mask))
        values = pc.if_else(pa.array(mask), pa.scalar(None, pa.float32()), data.column(column))
        data = data.set_column(column, data.schema.field(column), values)
    if left_out is None:
        return Part(data, 0, counts), tuple(faults)
    part = Part(data.filter(pa.array(~left_out)), int(np.count_nonzero(left_out)), counts)
    return part, tuple(fault for fault in faults if len(fault.rows))


def told(parts: Iterable[Part], channel: Channel, layout: Layout) -> Iterator[Part]:
    """Yield `parts`; at the end, log the infinite values that became missing, by column."""
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(part.infinite)
        yield part
    if counts:
        positions = [*(position for _, position in layout.roles), *layout.features]
        columns = ", ".join(
            f"{shown(positions[column], layout.columns)} {count:,}"
            for column, count in counts.most_common(LISTED)
        )
        more = f" and {len(counts) - LISTED} more columns" if len(counts) > LISTED else ""
        total = sum(counts.values())
        log(f"Channel {channel.name}: {total:,} infinite values count as missing: {columns}{more}.")


def merged(parts: Iterable[Part], roles: tuple[Role, ...], names: tuple[str, ...]) -> Iterator[Dense]:
    """Yield the rows of `parts` in full batches, the last one shorter."""
    size = rows_of_batch(len(roles) + len(names))
    held: list[pa.RecordBatch] = []
    rows = dropped = 0
    for part in parts:
        # A part without rows still brings its columns, for a channel of which every row was dropped.
        held.append(part.data)
        rows += part.data.num_rows
        dropped += part.dropped
        while rows >= size:
            table = pa.Table.from_batches(held)
            yield replace(dense(table.slice(0, size), roles, names), dropped=dropped)
            held = table.slice(size).to_batches()
            rows -= size
            dropped = 0
    if rows or dropped:
        yield replace(dense(pa.Table.from_batches(held), roles, names), dropped=dropped)


def dense(table: pa.Table, roles: tuple[Role, ...], names: tuple[str, ...]) -> Dense:
    """Return a table, role columns first, as a batch with the features called `names`."""
    table = table.combine_chunks()
    others = {role: table.column(index).to_numpy() for index, role in enumerate(roles)}
    features = table.select(range(len(roles), table.num_columns)).rename_columns(list(names))
    return Dense(features, others.pop("label", None), **others)


def _invalid(role: Role, column: pa.Array, lower: pa.Array | None) -> Mask:
    mask: Mask
    if role == "group":
        mask = column.is_null().to_numpy(zero_copy_only=False)
        return mask
    values = column.to_numpy(zero_copy_only=False)
    if role == "lower":
        mask = np.isnan(values) | np.isposinf(values)
    elif role == "upper":
        mask = ~(values > 0)
        if lower is not None:
            mask |= values < lower.to_numpy(zero_copy_only=False)
    elif role == "weight":
        mask = ~(np.isfinite(values) & (values >= 0))
    else:
        mask = ~np.isfinite(values)
    return mask


def _infinite(data: pa.RecordBatch, first: int) -> dict[int, Mask]:
    """Return the masks of infinite values of the columns from `first` on that have any.

    A sum is finite unless a value is not: one pass at memory speed clears nearly every column.
    """
    found: dict[int, Mask] = {}
    if not data.num_rows:
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(first, data.num_columns):
            column = data.column(index)
            values = np.frombuffer(column.buffers()[1], np.float32, data.num_rows, column.offset * CELL_BYTES)
            if np.isfinite(np.add.reduce(values)):
                continue
            mask = pc.fill_null(pc.is_inf(column), fill_value=False).to_numpy(zero_copy_only=False)
            if mask.any():
                found[index] = mask
    return found
