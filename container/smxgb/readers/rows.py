"""The rules that every row is held to, whatever file it comes from: labels, weights, groups, bounds, infinities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from smxgb.batch import ROWS, Dense, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from smxgb.channels import Channel, DataFile
    from smxgb.job import DataSettings

    type Mask = npt.NDArray[np.bool_]

LISTED = 5
"""How many places of one fault are named."""

DROP_LABEL = "Mend these rows, or leave them out with invalid_label=drop."
RULES: dict[Role, tuple[str, str]] = {
    "label": ("is not a label: a finite number is needed", DROP_LABEL),
    "weight": ("is not a weight: a finite number, 0 or more, is needed", "Mend these rows."),
    "group": ("is not a group: an integer is needed", "Number the groups."),
    "lower": ("is not a bound: a number, inf or -inf is needed", "Mend these rows."),
    "upper": ("is not a bound: a number, inf or -inf is needed", "Mend these rows."),
}
INFINITE = (
    "is infinite, or too large for a 32-bit float (3.4e38)",
    "Mend the values, or let them count as missing with infinity=missing.",
)


@dataclass(frozen=True)
class Fault:
    """One kind of mistake in one column: `column` is the position in the record batch, `rows` are indices."""

    column: int
    rows: npt.NDArray[np.int64]
    complaint: str
    cure: str

    def text(self, file: str, column: str, place: Callable[[int], str], value: Callable[[int], str]) -> str:
        """Return the sentence for the user; `place` and `value` show a row's place and cell."""
        first, *others = (int(row) for row in self.rows[: LISTED + 1])
        count = len(self.rows) - 1
        more = ""
        if count:
            listed = ", ".join(place(row) for row in others[:LISTED])
            rest = f" and {count - LISTED} more up to {place(int(self.rows[-1]))}" if count > LISTED else ""
            more = f" (so too: {listed}{rest})"
        return f"{file}, {place(first)}, {column}: {value(first)} {self.complaint}{more}. {self.cure}"


@dataclass(frozen=True)
class Part:
    """Clean rows: the role columns first, then the features. `infinite` counts what became missing, by column."""

    data: pa.RecordBatch
    dropped: int
    infinite: Counter[int]


def shown_file(channel: Channel, file: DataFile) -> str:
    """Return a file as messages show it: the channel, and its path below the channel's folder."""
    return f"{channel.name}/{file.path.relative_to(channel.folder).as_posix()}"


def clean(data: pa.RecordBatch, roles: tuple[Role, ...], settings: DataSettings) -> tuple[Part, list[Fault]]:
    """Apply the rules to rows whose first columns have `roles`, all others being float32 features.

    The part is only good if there are no faults.
    """
    faults = []
    left_out: Mask | None = None
    for column, role in enumerate(roles):
        invalid = _invalid(role, data.column(column))
        if left_out is not None:
            invalid &= ~left_out
        if not invalid.any():
            continue
        if role == "label" and settings.invalid_label == "drop":
            left_out = invalid
            continue
        faults.append(Fault(column, np.flatnonzero(invalid), *RULES[role]))
    dropped = 0
    if left_out is not None:
        # Row numbers of faults stay those of the file: what is dropped is filtered out at the end only.
        dropped = int(np.count_nonzero(left_out))
    infinite = _infinite(data, len(roles), left_out)
    counts: Counter[int] = Counter()
    for column, mask in infinite.items():
        rows = np.flatnonzero(mask)
        if settings.infinity == "missing":
            counts[column] = len(rows)
            values = pc.if_else(pa.array(mask), pa.scalar(None, pa.float32()), data.column(column))
            data = data.set_column(column, data.schema.field(column), values)
        else:
            faults.append(Fault(column, rows, *INFINITE))
    if left_out is not None:
        data = data.filter(pa.array(~left_out))
    return Part(data, dropped, counts), faults


def merged(parts: Iterable[Part], roles: tuple[Role, ...], names: tuple[str, ...]) -> Iterator[Dense]:
    """Yield the rows of `parts` in batches of `ROWS` rows, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows = dropped = 0
    for part in parts:
        # A part without rows still brings its columns, for a channel of which every row was dropped.
        held.append(part.data)
        rows += part.data.num_rows
        dropped += part.dropped
        while rows >= ROWS:
            table = pa.Table.from_batches(held)
            yield dense(table.slice(0, ROWS), roles, names, dropped)
            held = table.slice(ROWS).to_batches()
            rows -= ROWS
            dropped = 0
    if rows or dropped:
        yield dense(pa.Table.from_batches(held), roles, names, dropped)


def dense(table: pa.Table, roles: tuple[Role, ...], names: tuple[str, ...], dropped: int) -> Dense:
    """Return a table, role columns first, as a batch with the features called `names`."""
    table = table.combine_chunks()
    others = {role: table.column(index).to_numpy() for index, role in enumerate(roles)}
    features = table.select(range(len(roles), table.num_columns)).rename_columns(list(names))
    return Dense(features, others.pop("label", None), dropped=dropped, **others)


def _invalid(role: Role, column: pa.Array) -> Mask:
    if role == "group":
        return column.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    values = column.to_numpy(zero_copy_only=False)
    if role in {"lower", "upper"}:
        return np.isnan(values)  # type: ignore[no-any-return]
    valid = np.isfinite(values)
    if role == "weight":
        valid &= values >= 0
    return ~valid  # type: ignore[no-any-return]


def _infinite(data: pa.RecordBatch, first: int, left_out: Mask | None) -> dict[int, Mask]:
    """Return the masks of infinite values of the columns that have any.

    A sum is finite unless a value is not: one pass at memory speed clears nearly every column.
    """
    found: dict[int, Mask] = {}
    if not data.num_rows:
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(first, data.num_columns):
            column = data.column(index)
            buffer = column.buffers()[1]
            values = np.frombuffer(buffer, np.float32, data.num_rows, column.offset * 4)
            if np.isfinite(np.add.reduce(values)):
                continue
            mask = pc.fill_null(pc.is_inf(column), fill_value=False).to_numpy(zero_copy_only=False)
            if left_out is not None:
                mask = mask & ~left_out
            if mask.any():
                found[index] = mask
    return found
