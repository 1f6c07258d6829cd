"""libsvm channels: blocks of lines, parsed side by side, as sparse batches in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.log import notice
from smxgb.rows.batch import SPARSE
from smxgb.rows.prefetch import in_order
from smxgb.rows.readers.column_picks import column_picks
from smxgb.rows.readers.libsvm.lines import Lines, check_features, check_libsvm, line_blocks, roles_of
from smxgb.rows.readers.reader import Reader
from smxgb.rows.readers.row_rules import merged, with_infinities_told
from smxgb.rows.readers.streams import beginning, open_streams
from smxgb.rows.schema import Declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smxgb.rows.batch import Batch
    from smxgb.rows.readers.libsvm.lines import LineBlock
    from smxgb.rows.readers.reader import Request
    from smxgb.rows.readers.row_rules import CleanRows
    from smxgb.rows.readers.streams import Stream


@dataclass(frozen=True)
class _Start:
    """What the first line of a channel tells of all lines, and the mean length of the first ones in bytes."""

    lines: Lines
    line_bytes: float
    inflation: float


def open_channel(request: Request) -> Reader:
    """Return the reader of a channel of libsvm files: its first line tells what a line holds beside features.

    How many features there are is known when all rows were seen; indices are those of the files. Raises
    UserError as `smxgb.rows.readers.open_reader` does.
    """
    channel = request.channel
    start, streams = beginning(open_streams(channel), partial(_look, request))
    if start is None:
        raise UserError(f"channel {channel.name}: none of its files holds a row.")
    roles = start.lines.all_roles

    def batches(_: tuple[str, ...]) -> Iterator[Batch]:
        blocks = ((stream.source, block) for stream in streams for block in _rows_of(stream))
        parts = _with_indexing_told(
            in_order(partial(_part, start.lines), blocks, request.threads), len(roles)
        )
        return merged(with_infinities_told(parts, channel, [*roles, *SPARSE.names]), roles, None)

    expected = round(channel.size * start.inflation / start.line_bytes)
    return Reader(request.like or Declared(), batches, expected)


def _part(lines: Lines, source: str, block: LineBlock) -> tuple[str, CleanRows]:
    return source, lines.part(source, block)


def _with_indexing_told(parts: Iterable[tuple[str, CleanRows]], place: int) -> Iterator[CleanRows]:
    """Yield the rows of parts; at the end, say which files seem to count features from another index.

    The indices are the column at `place`. Files that begin with 1 and end one index behind those that begin
    with 0 count from 1.
    """
    extents: dict[str, tuple[int, int]] = {}
    for source, part in parts:
        indices = part.data.column(place).flatten().to_numpy()
        if len(indices):
            low, high = extents.get(source, (indices[0], indices[0]))
            extents[source] = min(low, indices.min()), max(high, indices.max())
        yield part
    first, second = ({name: high for name, (low, high) in extents.items() if low == base} for base in (0, 1))
    if first and second and max(second.values()) == max(first.values()) + 1:
        notice(
            f"{next(iter(second))} seems to count features from 1, and {next(iter(first))} from 0: all would "
            "be one column apart. Write the files alike."
        )


def _rows_of(stream: Stream) -> Iterator[LineBlock]:
    """Yield the blocks of a file. Raises UserError if the first holds several lines and no feature."""
    blocks = line_blocks(stream)
    for block in islice(blocks, 1):
        check_features(block, stream.source)
        yield block
    yield from blocks


def _look(request: Request, stream: Stream) -> _Start | None:
    """Return what the first row of a stream tells, None if it has none."""
    for block in line_blocks(stream):
        check_libsvm(block.data, stream.source)
        roles = roles_of(block.data)
        if roles is not None:
            picks = column_picks(request.settings, roles, request.channel.name, stream.source)
            line_bytes = len(block.data) / max(1, block.data.count(b"\n"))
            return _Start(Lines(roles, request.settings, picks), line_bytes, stream.inflation)
    return None
