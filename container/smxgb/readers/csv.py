"""CSV channels: blocks of their files, parsed side by side, as batches in order."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.readers.ahead import ahead
from smxgb.readers.columns import aligned, assigned, schema_of, unweighted
from smxgb.readers.csv_blocks import Block, line_end, read_blocks
from smxgb.readers.csv_cells import Cells
from smxgb.readers.csv_dialect import Head, check_text, find_delimiter, read_head
from smxgb.readers.rows import Part, merged, shown_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.batch import Batch, Layout, Schema
    from smxgb.channels import Channel
    from smxgb.job import DataSettings

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Start:
    """What a channel's first file decides for all: the delimiter and where the columns are."""

    delimiter: str
    source: str
    layout: Layout
    bytes_per_row: float


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
        return self._like or schema_of(self._start.layout)

    def expected_rows(self) -> int:
        """Return about how many rows there are, from the length of the first file's first lines."""
        return round(sum(file.size for file in self._channel.files) / self._start.bytes_per_row)

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows with the columns of `schema`."""
        roles = tuple(role for role, _ in self._start.layout.roles)
        yield from merged(self._parts(with_features=bool(schema.names)), roles, schema.names)

    @cached_property
    def _start(self) -> _Start:
        for file in self._channel.files:
            source = shown_file(self._channel, file)
            first = next(read_blocks(file.path, source), None)
            if first is None:
                continue
            check_text(first.data, source)
            delimiter = self._settings.delimiter
            if delimiter == "auto":
                delimiter = find_delimiter(first.data)
            head = read_head(first.data, delimiter, self._settings.header, source)
            if head is not None:
                layout = self._first_layout(head, source)
                self._log_start(source, delimiter, head)
                return _Start(delimiter, source, layout, _bytes_per_row(first.data))
        raise UserError(f"channel {self._channel.name}: no file holds a record.")

    def _first_layout(self, head: Head, source: str) -> Layout:
        if self._like is None or self._like.layout is None:
            layout = assigned(head.names, head.width, self._settings, source)
            _check_named(head, layout, source)
            return layout
        expected = self._like.layout
        weighted = "weight" in dict(expected.roles)
        if self._settings.csv_weights and weighted and head.width == expected.width - 1:
            _LOG.info("%s has one column fewer than train: its rows have no weights.", source)
            expected = unweighted(expected)
        return aligned(expected, head.names, head.width, source, "train")

    def _log_start(self, source: str, delimiter: str, head: Head) -> None:
        _LOG.info(
            "%s: delimiter %r, %s, %d columns.",
            source,
            delimiter,
            "header" if head.names else "no header",
            head.width,
        )

    def _parts(self, *, with_features: bool) -> Iterator[Part]:
        """Yield the parsed blocks of all files in order, with a bounded number of them in work."""
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
        for file in self._channel.files:
            source = shown_file(self._channel, file)
            blocks = read_blocks(file.path, source, start.delimiter)
            first = next(blocks, None)
            if first is None:
                continue
            check_text(first.data, source)
            head = read_head(first.data, start.delimiter, self._settings.header, source)
            if head is None:
                continue
            layout = aligned(start.layout, head.names, head.width, source, start.source)
            features = layout.features if with_features else ()
            cells = Cells(
                file.path,
                source,
                start.delimiter,
                layout,
                features,
                self._settings,
                head.start,
                head.names is None,
            )
            body = first.data[head.start :]
            if body:
                yield cells, Block(body, head.start)
            for block in blocks:
                yield cells, block


def _bytes_per_row(data: bytes) -> float:
    return len(data) / max(1, data.count(line_end(data) or b"\n"))


def _check_named(head: Head, layout: Layout, source: str) -> None:
    used = {*layout.features, *(position for _, position in layout.roles)}
    if head.unnamed and head.unnamed[0] == 0 and 0 in used:
        raise UserError(
            f"{source}: the first column has no name, as in a table that pandas saved with its index. Leave it out "
            f"with drop_columns=0, or save the table with index=False."
        )
