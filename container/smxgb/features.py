"""The features of a job, settled once all rows were seen: how many there are, and where they begin to count.

Dense files say it in their first record. Sparse ones leave out what is missing: a channel, or one host's
files, may never name the last feature, and nothing but the lowest index tells a file that counts from 0 from
one that counts from 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from smxgb.batch import SPARSE, Schema, Sparse
from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.batch import Batch
    from smxgb.channels import ContentType
    from smxgb.store import Extent, Stored, Summary

type Indexing = Literal["auto", "0", "1"]


def settle(
    schema: Schema,
    summaries: Mapping[str, Summary],
    content_types: Mapping[str, ContentType],
    indexing: Indexing,
) -> Schema:
    """Return the schema that the rows of all channels fit, once all of them were seen.

    Args:
        schema: What the first file of `train` said.
        summaries: What was seen in each channel, of all workers together.
        content_types: The type of each channel's files.
        indexing: What libsvm files call the first feature; "auto" decides by the lowest index of all.

    Raises:
        UserError: If a channel has more features than `train` can have, or indices below the first.
    """
    sparse = {name: summary.extent for name, summary in summaries.items() if summary.extent}
    if not sparse:
        return schema
    libsvm = {name: extent for name, extent in sparse.items() if content_types[name] == "libsvm"}
    first = _first_index(libsvm, indexing)
    widths = {name: _width(extent, first if name in libsvm else 0) for name, extent in sparse.items()}
    dense = {name: summary.columns for name, summary in summaries.items() if summary.columns is not None}
    for name, columns in dense.items():
        for other, width in widths.items():
            if width > columns:
                raise UserError(
                    f"channel {other} has {width} features, channel {name} has {columns}: all channels need "
                    "the same."
                )
    names = schema.names or Schema.unnamed(max([*widths.values(), *dense.values()])).names
    if not names:
        raise UserError("channel train: no row has a value, so there is no feature to train on.")
    return replace(schema, names=names, first_index=first if libsvm else None)


def fitted(stored: Stored, schema: Schema, content_type: ContentType) -> Stored:
    """Return a channel whose batches have the features of the settled schema."""
    if stored.summary.extent is None:
        return stored
    first = schema.first_index or 0 if content_type == "libsvm" else 0

    def batches() -> Iterator[Batch]:
        for batch in stored.batches():
            yield _moved(batch, first) if isinstance(batch, Sparse) else batch

    return replace(stored, batches=batches)


def describe_indexing(schema: Schema, indexing: Indexing) -> str:
    """Return the line of the log that says where libsvm's features begin, and why."""
    if indexing == "auto":
        reason = "the lowest index of all files" if schema.first_index == 0 else "no file has the index 0"
    else:
        reason = "libsvm_indexing"
    return (
        f"libsvm: the first feature has the index {schema.first_index} ({reason}); there are "
        f"{len(schema.names)} features."
    )


def _first_index(extents: Mapping[str, Extent], indexing: Indexing) -> int:
    lowest = {name: extent.lowest for name, extent in extents.items() if extent.lowest is not None}
    if indexing == "auto":
        return min(1, *lowest.values(), 1) if lowest else 0
    for name, index in lowest.items():
        if index < int(indexing):
            raise UserError(
                f"channel {name} has the index {index}, but libsvm_indexing={indexing} says that they begin "
                f"with {indexing}: set libsvm_indexing=0, or leave it out."
            )
    return int(indexing)


def _width(extent: Extent, first: int) -> int:
    return max(extent.width, 0 if extent.highest is None else extent.highest + 1 - first)


def _moved(batch: Sparse, first: int) -> Sparse:
    if not first:
        return batch
    indices = pa.ListArray.from_arrays(batch.offsets, pa.array(batch.indices - np.int32(first)))
    features = pa.Table.from_arrays([indices, batch.features.column("values")], schema=SPARSE)
    return replace(batch, features=features)
