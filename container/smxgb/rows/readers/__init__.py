"""Readers: the files of a channel as batches. One module for each content type, imported only when chosen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import Channel, ContentType, DataSettings
    from smxgb.rows.batch import Batch, Schema

READERS: Mapping[ContentType, str] = {
    "csv": "smxgb.rows.readers.csv.reader:CsvReader",
    "libsvm": "smxgb.rows.readers.libsvm.reader:LibsvmReader",
    "parquet": "smxgb.rows.readers.parquet.reader:ParquetReader",
    "recordio-protobuf": "smxgb.rows.readers.recordio.reader:RecordioReader",
}
"""The class for each content type."""


class Reader(Protocol):
    """Reads one channel."""

    @property
    def cheap_to_repeat(self) -> bool:
        """Whether a second pass should read the files again; else the batches of the first pass are kept."""

    @property
    def buffer_bytes(self) -> int:
        """How many bytes of a file a pass holds at its most, beside a batch; 0 for what is read once."""

    def schema(self) -> Schema:
        """Return the features that the channel's files hold.

        Raises UserError if the files disagree with each other or with `train`, or hold columns that can't be
        features.
        """

    def expected_rows(self) -> int:
        """Return about how many rows there are: exact for Parquet, judged by the first records for text."""

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows, in the order of files and rows, with the columns of `schema`.

        A schema without names asks for the labels, weights and other such columns alone. Nothing is yielded
        if there are no rows. Raises UserError naming file, line or row, column and value of what can't be
        trained on.
        """


def open_reader(channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None) -> Reader:
    """Return the reader of a channel; no file is opened yet.

    `like` is the schema of `train` when another channel is read.
    """
    module, _, attribute = READERS[channel.content_type].partition(":")
    reader: Reader = getattr(import_module(module), attribute)(channel, settings, threads=threads, like=like)
    return reader
