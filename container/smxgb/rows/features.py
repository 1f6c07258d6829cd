"""The features of a job, settled once all rows were seen: how many there are, and what codes categories have.

The first record of a dense file tells how many features there are. Sparse files leave out missing values: a
channel, or one host's files, may never name the last feature, and only the lowest index tells whether a file
counts from 0 or from 1. Columns of categories are dictionaries that differ from batch to batch: XGBoost would
take the codes of one batch for those of another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from smxgb.errors import UserError
from smxgb.job import FORMATS
from smxgb.log import log
from smxgb.rows.batch import SPARSE, Sparse
from smxgb.rows.categories import Coding, settled
from smxgb.rows.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smxgb.job import ContentType
    from smxgb.rows.batch import Batch, Dense
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.schema import Declared
    from smxgb.rows.store import Stored
    from smxgb.rows.summary import Extent, Summary
    from smxgb.settings import Labels

SHOWN = 5
"""Unseen categories that a line of the log names."""

MOST = 1 << 24
"""The most features of sparse rows: one wrong index must not take all memory (`plan.SPARSE_FEATURE` each)."""

type Indexing = Literal["auto", "0", "1"]


def settle(
    declared: Declared,
    summaries: Mapping[str, Summary],
    content_types: Mapping[str, ContentType],
    indexing: Indexing,
) -> Schema:
    """Return the schema that the rows of all channels fit, once all of them were seen.

    Args:
        declared: What the first file of `train` declares.
        summaries: What was seen in each channel, of all workers together.
        content_types: The type of each channel's files.
        indexing: What libsvm files call the first feature; "auto" decides by the lowest index of all.

    Raises:
        UserError: If a channel has more features than `train` can have, or indices below the first.
    """
    count, first = count_features(summaries, content_types, indexing)
    is_dense = any(summary.columns is not None for summary in summaries.values())
    if not count or not (is_dense or any(summary.present for summary in summaries.values())):
        raise UserError("channel train: no row has a value, so there is no feature to train on.")
    schema = declared.schema or Schema.unnamed(count)
    return replace(schema, first_index=first, categories=_settled_categories(summaries))


def count_features(
    summaries: Mapping[str, Summary], content_types: Mapping[str, ContentType], indexing: Indexing
) -> tuple[int, int | None]:
    """Return how many features the rows of all channels have, and what libsvm files call the first one.

    The arguments are those of `settle`. The second is None if there are no such files. Raises UserError as
    `settle` does.
    """
    sparse = {name: summary.extent for name, summary in summaries.items() if summary.extent}
    libsvm = {
        name: extent for name, extent in sparse.items() if FORMATS[content_types[name]].numbers_features
    }
    first = _first_index(libsvm, indexing)
    widths = {name: _width(name, extent, first if name in libsvm else 0) for name, extent in sparse.items()}
    dense = {name: summary.columns for name, summary in summaries.items() if summary.columns is not None}
    count = max([*widths.values(), *dense.values()], default=0)
    for name, columns in dense.items():
        if columns < count:
            other = next(name for name, found in {**dense, **widths}.items() if found == count)
            raise UserError(
                f"channel {name} has {columns} features, channel {other} has {count}: all channels need the "
                "same."
            )
    return count, first if libsvm else None


def check_lines_have_labels(
    summaries: Mapping[str, Summary],
    content_types: Mapping[str, ContentType],
    settings: ReadingSettings,
) -> None:
    """Raise UserError for libsvm without labels: the first pair of each line passes for label and weight.

    All labels are then one index. The arguments are those of `settle`; with a column of weights, those of the
    lines are not read.
    """
    for name, label in _labels_beside_weights(summaries, content_types, settings):
        if summaries[name].rows > 1 and label.lowest == label.highest:
            raise UserError(
                f"channel {name}: every line begins with {label.lowest:g}:, as in '{label.lowest:g}:1.2 "
                "1:3', which is read as a label and its weight, and all labels are equal: the lines have "
                "no label. Write it before the first index:value pair."
            )


def _labels_beside_weights(
    summaries: Mapping[str, Summary],
    content_types: Mapping[str, ContentType],
    settings: ReadingSettings,
) -> Iterator[tuple[str, Labels]]:
    """Yield the channels of libsvm whose lines have weights of their own that are read, and their labels."""
    for name, summary in summaries.items():
        is_read = name == "train" or summaries["train"].weights is None
        has_weights = summary.weights is not None and "weight" not in settings.columns
        if FORMATS[content_types[name]].numbers_features and is_read and has_weights and summary.label:
            yield name, summary.label


def doubts_about_lines(
    summaries: Mapping[str, Summary],
    content_types: Mapping[str, ContentType],
    settings: ReadingSettings,
) -> Iterator[str]:
    """Yield the notices about libsvm: lines that seem to lack a label, and indices that seem moved.

    The arguments are those of `settle`.
    """
    for name, label in _labels_beside_weights(summaries, content_types, settings):
        extent = summaries[name].extent
        are_several = label.different is None or len(label.different) > 2  # noqa: PLR2004 - classes 0 and 1
        if are_several and label.whole and label.lowest >= 0 and extent and extent.labels_ascend:
            yield (
                f"channel {name}: every line begins with a label and its weight, and each label is a whole "
                "number below the line's first index, as an index is: if the lines have no label, write it "
                "before the first pair."
            )
    extents = {
        name: summary.extent
        for name, summary in summaries.items()
        if summary.extent and FORMATS[content_types[name]].numbers_features
    }
    for name, extent in extents.items():
        low, lowest = extents["train"].lowest if "train" in extents else None, extent.lowest
        if {low, lowest} == {0, 1} and (lowest == 0 or _is_longer(extent, extents["train"])):
            yield (
                f"The lowest index of channel {name} is {lowest}, that of train {low}: if one counts "
                "features from 0 and the other from 1, all are one column apart. Write both alike."
            )


def _is_longer(extent: Extent, other: Extent) -> bool:
    """Tell whether an extent ends one index behind another."""
    return extent.highest is not None and other.highest is not None and extent.highest == other.highest + 1


def _settled_categories(summaries: Mapping[str, Summary]) -> dict[str, tuple[str, ...]]:
    """Return the categories that occur in `train`, in the order of their codes.

    A feature without any is none of categories: XGBoost takes no empty list.
    """
    found = summaries["train"].categories
    for name, summary in summaries.items():
        if summary.rows and summary.categories.keys() != found.keys():
            raise UserError(
                f"channel {name} has categories in {_listed(summary.categories)}, channel train in "
                f"{_listed(found)}: both need the same columns of categories, in CSV or Parquet."
            )
    return {name: settled(words) for name, words in found.items() if words}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(repr, names))) or "no column"


def fitted(name: str, stored: Stored, schema: Schema, content_type: ContentType) -> Stored:
    """Return a channel whose batches have the features of the settled schema.

    A category that `train` does not have counts as missing, which is logged. Where `train` has none at all,
    the feature is a missing number in every row.
    """
    if stored.summary.extent is None and not stored.summary.categories:
        return stored
    first = schema.first_index or 0 if FORMATS[content_type].numbers_features else 0
    codings = {name: Coding(schema.categories.get(name, ())) for name in stored.summary.categories}
    for feature, words in stored.summary.categories.items():
        unseen = sorted(codings[feature].unseen(words))
        if unseen:
            log(
                f"Channel {name}: {len(unseen)} categories of {feature!r} are not in train and count as "
                f"missing: {', '.join(unseen[:SHOWN])}{', ...' if len(unseen) > SHOWN else ''}."
            )

    def batches() -> Iterator[Batch]:
        for batch in stored.batches():
            yield _moved(batch, first) if isinstance(batch, Sparse) else _recoded(batch, codings)

    return replace(stored, batches=batches)


def _recoded(batch: Dense, codings: Mapping[str, Coding]) -> Dense:
    features = batch.features
    for name, coding in codings.items():
        index = features.column_names.index(name)
        missing = pa.nulls(batch.rows, pa.float32())
        column = coding.coded(features.column(index)) if coding.categories else missing
        features = features.set_column(index, name, column)
    return replace(batch, features=features)


def describe_unused(schema: Schema, train: Summary) -> list[str]:
    """Return the line of the log that names the features without a category in `train`, if there are any."""
    unused = sorted(train.categories.keys() - schema.categories.keys())
    if not unused:
        return []
    return [f"Missing in every row of train: {_listed(unused)}, which is therefore no feature of categories."]


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
        return min(1, *lowest.values()) if lowest else 0
    for name, index in lowest.items():
        if index < int(indexing):
            raise UserError(
                f"channel {name} has the index {index}, but libsvm_indexing={indexing} says that they begin "
                f"with {indexing}: set libsvm_indexing=0, or leave it out."
            )
    return int(indexing)


def _width(channel: str, extent: Extent, first: int) -> int:
    width = 0 if extent.highest is None else extent.highest + 1 - first
    if max(width, extent.width) <= MOST:
        return max(width, extent.width)
    if width > MOST:
        found = f"a row with the index {extent.highest}, which makes {width:,} features"
    else:
        found = f"a record whose shape says that there are {extent.width:,} features"
    raise UserError(
        f"channel {channel} has {found}, and a model can have {MOST:,} at most: correct that row, or number "
        "the features one after the other."
    )


def _moved(batch: Sparse, first: int) -> Sparse:
    if not first:
        return batch
    indices = pa.ListArray.from_arrays(batch.offsets, pa.array(batch.indices - np.int32(first)))
    features = pa.Table.from_arrays([indices, batch.features.column("values")], schema=SPARSE)
    return replace(batch, features=features)
