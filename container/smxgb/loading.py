"""Loading: this worker's share of each channel, read once and ready to be read again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.agreement import (
    agree_on_channels,
    agree_on_groups,
    agree_on_rows,
    agree_on_schema,
    by_all,
    together,
)
from smxgb.batch import SPARSE, Dense, Sparse
from smxgb.errors import Mistakes, UserError
from smxgb.features import describe_indexing, fitted, settle
from smxgb.log import log
from smxgb.readers import open_reader
from smxgb.readers.columns import SETTINGS
from smxgb.readers.rows import shown_file
from smxgb.shares import share
from smxgb.store import Stored, Summary, keep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.batch import Batch, FloatArray, Role, Schema
    from smxgb.channels import Channel
    from smxgb.content_types import ContentType
    from smxgb.group import Group
    from smxgb.job import DataSettings, Job
    from smxgb.link import Link
    from smxgb.readers import Reader


@dataclass(frozen=True)
class Loaded:
    """The rows of each channel, ready to be read again and again, and the features they have in common.

    `channels` are this worker's rows, `summaries` those of each worker, by rank.
    """

    schema: Schema
    channels: Mapping[str, Stored]
    summaries: list[dict[str, Summary]]

    @property
    def all_rows(self) -> Mapping[str, Summary]:
        """The summary of all workers' rows of each channel."""
        return together(self.summaries)


def load(job: Job, threads: int, group: Group, scratch: Path, link: Link) -> Loaded:
    """Read this worker's share of all channels; from then on it is in the phase "agree", until all have.

    Raises UserError with what is wrong with the files of this worker, or between those of all workers.
    """
    shares: list[Channel] = []
    for channel in agree_on_channels(job.channels, group):
        mine = share(channel, group, whole=job.data.group is not None)
        if group.size > 1:
            log(mine.note)
        shares.append(mine.channel)
    schema, reader = _agreed_schema(job, shares[0], threads, group)
    mistakes = Mistakes()
    stored: dict[str, Stored] = {}
    for channel in shares:
        with mistakes.collect():
            if not channel.files:
                stored[channel.name] = Stored(Summary(), lambda: iter(()))
                continue
            if channel.name != "train" or reader is None:
                reader = open_reader(channel, job.data, threads=threads, like=schema)
            stored[channel.name] = keep(reader, reader.schema(), scratch, channel.name)
    mistakes.raise_any()
    link.phase("agree")
    summaries = agree_on_rows({name: kept.summary for name, kept in stored.items()}, group)
    for channel in shares:
        find = partial(_file_of, channel, job.data, schema, threads)
        with mistakes.collect():
            agree_on_groups(channel.name, stored[channel.name].groups, group, find)
    mistakes.raise_any("everywhere")
    types: dict[str, ContentType] = {channel.name: channel.content_type for channel in shares}
    with by_all():
        schema = settle(schema, together(summaries), types, job.data.indexing)
        _check_categories(schema, summaries, group)
    stored = {name: fitted(name, kept, schema, types[name]) for name, kept in stored.items()}
    loaded = Loaded(schema, _with_empty_batches(stored, schema, summaries, job.data), summaries)
    if schema.first_index is not None and group.rank == 0:
        log(describe_indexing(schema, job.data.indexing))
    _tell(loaded, group)
    return loaded


def _agreed_schema(job: Job, train: Channel, threads: int, group: Group) -> tuple[Schema, Reader | None]:
    """Return the schema of all workers, and the reader of this worker's files if it has the same."""
    mistakes = Mistakes()
    reader = own = None
    source = ""
    if train.files:
        source = shown_file(train, train.files[0])
        with mistakes.collect():
            reader = open_reader(train, job.data, threads=threads, like=None)
            own = reader.schema()
    schema = agree_on_schema(own, source, mistakes, group)
    return schema, reader if own and own.layout == schema.layout else None


def _file_of(channel: Channel, settings: DataSettings, schema: Schema, threads: int, identifier: int) -> str:
    """Return the first file of a channel that holds a row of a group, as messages show it."""
    for file in channel.files if channel.mode != "Pipe" else ():
        # A file may have no row, which is no mistake while others have.
        with suppress(UserError):
            reader = open_reader(replace(channel, files=(file,)), settings, threads=threads, like=schema)
            own = replace(reader.schema(), names=()) if reader.cheap_to_repeat else reader.schema()
            if any(batch.group is not None and identifier in batch.group for batch in reader.batches(own)):
                return shown_file(channel, file)
    return shown_file(channel, channel.files[0])


def _check_categories(schema: Schema, summaries: list[dict[str, Summary]], group: Group) -> None:
    """Raise UserError if there are categories and a worker without a row to train on: XGBoost needs one."""
    idle = [
        host for host, of_worker in zip(group.hosts, summaries, strict=True) if not of_worker["train"].rows
    ]
    if schema.categories and idle:
        raise UserError(
            f"channel train has categories and no row on {', '.join(idle)}: XGBoost then needs rows on each "
            "worker. Use fewer hosts, or more files."
        )


def _with_empty_batches(
    stored: Mapping[str, Stored], schema: Schema, summaries: list[dict[str, Summary]], data: DataSettings
) -> dict[str, Stored]:
    """Give a channel that has no rows here, but on another worker, one empty batch of the same columns."""
    rows = together(summaries)
    filled = {}
    for name, kept in stored.items():
        if kept.rows:
            filled[name] = kept
            continue
        roles: set[Role] = {
            "label",
            "weight",
            *(role for role in SETTINGS if getattr(data, role) is not None),
        }
        if schema.layout:
            roles = {role for role, _ in schema.layout.roles}
        if rows[name].weights is None:
            roles.discard("weight")
        label = rows[name].label
        if schema.categories and roles == {"label"} and label:
            make = partial(_one_idle_row, schema, label.lowest)
        else:
            make = partial(_one_empty_batch, schema, roles, is_sparse=rows[name].extent is not None)
        filled[name] = Stored(kept.summary, make)
    return filled


def _one_empty_batch(schema: Schema, roles: set[Role], *, is_sparse: bool) -> Iterator[Batch]:
    def of(role: Role) -> FloatArray | None:
        return np.zeros(0, np.float32) if role in roles else None

    group = np.zeros(0, np.int64) if "group" in roles else None
    values = (of("label"), of("weight"), group, of("lower"), of("upper"))
    features = SPARSE.empty_table() if is_sparse else _missing(schema, 0)
    yield (Sparse if is_sparse else Dense)(features, *values)


def _one_idle_row(schema: Schema, label: float) -> Iterator[Batch]:
    """Yield a row that weighs nothing, all missing: with categories, XGBoost takes no fewer."""
    yield Dense(_missing(schema, 1), np.full(1, label, np.float32), np.zeros(1, np.float32))


def _missing(schema: Schema, rows: int) -> pa.Table:
    columns = {name: pa.nulls(rows, pa.float32()) for name in schema.names}
    for name, words in schema.categories.items():
        codes = pa.nulls(rows, pa.int32())
        columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))
    return pa.table(columns)


def _tell(loaded: Loaded, group: Group) -> None:
    """Log how many rows there are, of each host and all together."""
    for name, rows in loaded.all_rows.items():
        if group.rank == 0:
            if group.size > 1:
                of_hosts: dict[str, list[str]] = {}
                for host, of_worker in zip(group.hosts, loaded.summaries, strict=True):
                    of_hosts.setdefault(host, []).append(f"{of_worker[name].rows:,}")
                parts = [f"{host} {' + '.join(counts)}" for host, counts in of_hosts.items()]
                log(f"Rows of {name}: {', '.join(parts)}; together {rows.rows:,}.")
            columns = f" and {len(loaded.schema.names)} columns" if name == "train" else ""
            log(f"{name.capitalize()} matrix has {rows.rows} rows{columns}")
            if rows.dropped:
                log(f"Channel {name}: {rows.dropped} rows without a valid label were dropped.")
