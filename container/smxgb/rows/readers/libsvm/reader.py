"""libsvm channels: blocks of lines, parsed side by side, as sparse batches in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.rows.batch import SPARSE, Schema
from smxgb.rows.prefetch import begun, in_order
from smxgb.rows.readers.column_picks import taken
from smxgb.rows.readers.libsvm.lines import Lines, check_libsvm, line_blocks, roles_of
from smxgb.rows.readers.row_rules import merged, with_infinities_told
from smxgb.rows.readers.streams import open_streams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Channel, DataSettings
    from smxgb.rows.batch import Batch
    from smxgb.rows.readers.libsvm.lines import Block


class LibsvmReader:
    """Reads the libsvm files of one channel; see `smxgb.rows.readers.Reader`.

    What a line holds beside its features, a weight and a qid, is told by the first line of the channel.
    """

    cheap_to_repeat = False
    buffer_bytes = 0

    def __init__(
        self, channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None
    ) -> None:
        self._channel = channel
        self._settings = settings
        self._threads = threads
        self._like = like
        self._begun: Iterator[tuple[str, Block]] | None = None
        self._inflation = 0.0

    def schema(self) -> Schema:
        """Return a schema without names: how many features there are is known when all rows were seen."""
        self._begin()
        return self._like or Schema((), invented=True)

    def expected_rows(self) -> int:
        """Return about how many rows there are, from the length of the first lines."""
        self._begin()
        return round(self._channel.size * self._inflation / self._line_bytes)

    def batches(self, schema: Schema) -> Iterator[Batch]:  # noqa: ARG002 - what a line holds is read as one
        """Yield all rows; indices are those of the files."""
        blocks = self._begin()
        self._begun = None
        roles = self._lines.all_roles
        parts = in_order(self._lines.part, blocks, self._threads)
        return merged(with_infinities_told(parts, self._channel, [*roles, *SPARSE.names]), roles, None)

    def _begin(self) -> Iterator[tuple[str, Block]]:
        """Return the blocks of all files, of which the first has been looked at."""
        if self._begun is None:
            blocks = self._blocks()
            for source, block in blocks:
                check_libsvm(block.data, source)
                roles = roles_of(block.data)
                if roles is not None:
                    break
            else:
                raise UserError(f"channel {self._channel.name}: none of its files holds a row.")
            taking = taken(self._settings, roles, self._channel.name, source)
            self._lines = Lines(roles, self._settings, taking)
            self._line_bytes = len(block.data) / max(1, block.data.count(b"\n"))
            self._begun = begun((source, block), blocks)
        return self._begun

    def _blocks(self) -> Iterator[tuple[str, Block]]:
        for stream in open_streams(self._channel):
            for block in line_blocks(stream):
                self._inflation = self._inflation or stream.inflation
                yield stream.source, block
