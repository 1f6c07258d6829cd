"""Readers: the files of a channel as batches. One module for each content type, imported only when chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.batch import Batch, Schema


class Reader(Protocol):
    """Reads one channel."""

    @property
    def cheap_to_repeat(self) -> bool:
        """Whether a second pass should read the files again; else the batches of the first pass are kept."""

    def schema(self) -> Schema:
        """Return the features that the channel's files hold.

        Raises UserError if the files disagree, or hold columns that can't be features.
        """

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows, in the order of files and rows, with the columns of `schema`.

        Raises UserError naming file, line or row, column and value of what can't be trained on.
        """
