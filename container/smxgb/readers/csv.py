"""CSV channels: blocks of their files, parsed side by side, as batches in order."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.progress import log
from smxgb.readers.ahead import ahead
from smxgb.readers.columns import aligned, assigned, schema_of, unweighted
from smxgb.readers.csv_blocks import Block, block_size, line_end, read_blocks, read_part
from smxgb.readers.csv_cells import Cells
from smxgb.readers.csv_dialect import Head, check_text, find_delimiter, read_head
from smxgb.readers.rows import Part, merged, shown_file, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.batch import Batch, Layout, Schema
    from smxgb.channels import Channel
    from smxgb.job import DataSettings


@dataclass(frozen=True)
class _Start:
    """What the first file with a record decides for all: the delimiter and where the columns are."""

    delimiter: str
    source: str
    layout: Layout
    record_bytes: float


class CsvReader:
    """Reads the CSV files of one channel; see `smxgb.readers.Reader`."""

    cheap_to_repeat = False

    def __init__(
        self, channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None
    ) -> None:
        self._channel = channel
        self._settings = settings
        self._threads = threads
        self._like = like

    def schema(self) -> Schema:
        """Return the features, from the beginning of the first file that has a record."""
        layout = self._start.layout
        return self._like or schema_of(layout)

    def expected_rows(self) -> int:
        """Return about how many rows there are, from the length of the first file's first lines."""
        return round(sum(file.size for file in self._channel.files) / self._start.record_bytes)

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows with the columns of `schema`."""
        roles = tuple(role for role, _ in self._start.layout.roles)
        parts = told(self._parts(with_features=bool(schema.names)), self._channel, self._start.layout)
        return merged(parts, roles, schema.names)

    @cached_property
    def _start(self) -> _Start:
        for file in self._channel.files:
            source = shown_file(self._channel, file)
            chosen = self._settings.delimiter
            first = next(read_blocks(file.path, source, "," if chosen == "auto" else chosen), None)
            if first is None:
                continue
            check_text(first.data, source)
            delimiter = find_delimiter(first.data) if chosen == "auto" else chosen
            head = read_head(first.data, delimiter, self._settings.header, source)
            if head is None:
                continue
            layout = self._first_layout(head, source)
            header = "a" if head.names else "no"
            log(f"{source}: delimiter {delimiter!r}, {header} header, {head.width} columns.")
            lines = max(1, first.data.count(line_end(first.data)))
            return _Start(delimiter, source, layout, len(first.data) / lines)
        raise UserError(f"channel {self._channel.name}: none of its files holds a record.")

    def _first_layout(self, head: Head, source: str) -> Layout:
        if self._like is None or self._like.layout is None:
            layout = assigned(head.names, head.width, self._settings, source)
            used = {*layout.features, *(position for _, position in layout.roles)}
            if head.unnamed and 0 in used:
                raise UserError(
                    f"{source}: the first column has no name, as in a table that pandas saved with its "
                    "index. Leave it out with drop_columns=0, or save the table with index=False."
                )
            return layout
        expected = self._like.layout
        if (
            self._settings.csv_weights
            and "weight" in dict(expected.roles)
            and head.width == expected.width - 1
        ):
            log(f"{source} has one column fewer than train: its rows have no weights.")
            expected = unweighted(expected)
        return aligned(expected, head.names, head.width, source, "train")

    def _parts(self, *, with_features: bool) -> Iterator[Part]:
        """Yield the parsed blocks of all files in order, a bounded number of them being in work."""
        waiting: deque[Future[Part]] = deque()
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="csv")
        try:
            for cells, block in ahead(self._blocks(with_features=with_features)):
                waiting.append(pool.submit(cells.part, block))
                if len(waiting) > self._threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _blocks(self, *, with_features: bool) -> Iterator[tuple[Cells, Block]]:
        start = self._start
        size = block_size(start.record_bytes)
        for file in self._channel.files:
            source = shown_file(self._channel, file)
            blocks = read_blocks(file.path, source, start.delimiter, size)
            first = next(blocks, None)
            if first is None:
                continue
            check_text(first.data, source)
            head = read_head(first.data, start.delimiter, self._settings.header, source)
            if head is None:
                continue
            layout = aligned(start.layout, head.names, head.width, source, start.source)
            features = layout.features if with_features else ()
            headless = head.names is None
            cells = Cells(
                file.path, source, start.delimiter, layout, features, self._settings, head.start, headless
            )
            if file.is_part:
                extent = max(file.begin, head.start), file.end
                blocks = read_part(file.path, source, start.delimiter, size, extent)
            elif len(first.data) > head.start:
                yield cells, Block(first.data[head.start :], head.start)
            for block in blocks:
                yield cells, block
