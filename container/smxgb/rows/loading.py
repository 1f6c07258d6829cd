"""Loading: this worker's share of each channel, read once and ready to be read again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import Mistakes, UserError
from smxgb.job import overlaps
from smxgb.log import log, notice
from smxgb.rows.agreement import (
    agree_on_channels,
    agree_on_features,
    agree_on_groups,
    agree_on_rows,
    by_all,
    together,
)
from smxgb.rows.classes import (
    check_classes,
    describe_classes,
    rare_classes,
    settle_classes,
    with_codes,
    with_labels,
    with_words,
)
from smxgb.rows.empty_workers import check_empty_workers, with_rows_for_empty_workers
from smxgb.rows.features import (
    check_lines_have_labels,
    describe_indexing,
    describe_unused,
    doubts_about_lines,
    fitted,
    settle,
)
from smxgb.rows.readers import open_reader
from smxgb.rows.readers.row_rules import shown_file
from smxgb.rows.reading import reading_settings
from smxgb.rows.shares import share
from smxgb.rows.store import Stored, keep
from smxgb.rows.summary import Summary
from smxgb.supervision.messages import PhaseBegins
from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from smxgb.job import Channel, ContentType, Job
    from smxgb.rows.readers import Reader
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.schema import Declared, Schema
    from smxgb.rows.worker_group import Group
    from smxgb.supervision.link import Link


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
    settings = reading_settings(job.parameters.settings, job.channels)
    _notice_overlaps(job, group)
    shares: list[Channel] = []
    for channel in agree_on_channels(job.channels, group):
        mine = share(channel, group, whole="group" in settings.columns)
        if group.size > 1:
            log(mine.note)
        shares.append(mine.channel)
    of_channel = {channel.name: settings.with_coder() for channel in shares}
    declared, reader = _agreed(shares[0], of_channel["train"], threads, group)
    mistakes = Mistakes()
    stored: dict[str, Stored] = {}
    for channel in shares:
        with mistakes.collect():
            if not channel.files:
                stored[channel.name] = Stored(Summary(), lambda: iter(()))
                continue
            if channel.name != "train" or reader is None:
                reader = open_reader(channel, of_channel[channel.name], threads=threads, like=declared)
            kept = keep(reader, scratch, channel.name)
            summary = with_words(kept.summary, of_channel[channel.name].coder)
            stored[channel.name] = replace(kept, summary=summary)
    mistakes.raise_any()
    link.send(PhaseBegins("agree"))
    summaries = agree_on_rows({name: kept.summary for name, kept in stored.items()}, group)
    for channel in shares:
        find = partial(_file_of, channel, settings, declared, threads)
        with mistakes.collect():
            agree_on_groups(channel.name, stored[channel.name].groups, group, find)
    mistakes.raise_any("everywhere")
    types: dict[str, ContentType] = {channel.name: channel.content_type for channel in shares}
    with by_all():
        check_lines_have_labels(together(summaries), types, settings)
        schema = settle(declared, together(summaries), types, settings.indexing)
        if settings.class_labels:
            objective = job.parameters.settings.objective
            classes = settle_classes(declared.layout, together(summaries), settings.class_labels, objective)
            schema = replace(schema, classes=classes)
        empty = [host for host, found in zip(group.hosts, summaries, strict=True) if not found["train"].rows]
        check_empty_workers(empty, job.parameters.settings)
    if schema.classes:
        opened = partial(open_reader, threads=threads, like=declared)
        stored = _coded(stored, schema.classes, settings, partial(_place_of_label, shares, settings, opened))
        summaries = [
            {name: with_labels(found, schema.classes) for name, found in each.items()} for each in summaries
        ]
    stored = {name: fitted(name, kept, schema, types[name]) for name, kept in stored.items()}
    channels = with_rows_for_empty_workers(stored, schema, together(summaries), any_empty=bool(empty))
    loaded = Loaded(schema, channels, summaries)
    if group.rank == 0:
        _describe(loaded, types, settings)
    _tell(loaded, group)
    return loaded


def _describe(loaded: Loaded, types: Mapping[str, ContentType], settings: ReadingSettings) -> None:
    """Say what was settled about the features of all workers' rows."""
    for line in describe_unused(loaded.schema, loaded.all_rows["train"]):
        log(line)
    if loaded.schema.classes:
        log(describe_classes(loaded.schema.classes))
        for text in rare_classes(loaded.all_rows["train"]):
            notice(text)
    if loaded.schema.first_index is not None:
        log(describe_indexing(loaded.schema, settings.indexing))
        for text in doubts_about_lines(loaded.all_rows, types, settings):
            notice(text)


def _notice_overlaps(job: Job, group: Group) -> None:
    """Say which files of validation are in train too; one worker of each host does."""
    if group.hosts.index(group.hosts[group.rank]) == group.rank:
        for text in overlaps(job.channels.train, job.channels.validation):
            notice(text)


def _agreed(
    train: Channel, settings: ReadingSettings, threads: int, group: Group
) -> tuple[Declared, Reader | None]:
    """Return what all workers' files declare, and the reader of this worker's if they declare just that."""
    mistakes = Mistakes()
    reader = own = None
    source = ""
    if train.files:
        source = shown_file(train, train.files[0])
        with mistakes.collect():
            reader = open_reader(train, settings, threads=threads, like=None)
            own = reader.declared
    declared = agree_on_features(own, source, mistakes, group)
    return declared, reader if own and own.layout == declared.layout else None


def _file_of(
    channel: Channel, settings: ReadingSettings, declared: Declared, threads: int, identifier: int
) -> str:
    """Return the first file of a channel that holds a row of a group, as messages show it."""
    for file in channel.files if channel.mode != "Pipe" else ():
        # A file without a row is not a mistake as long as another file has one.
        with suppress(UserError):
            reader = open_reader(replace(channel, files=(file,)), settings, threads=threads, like=declared)
            batches = reader.batches(() if reader.can_repeat else None)
            if any("group" in batch.roles and identifier in batch.roles["group"] for batch in batches):
                return shown_file(channel, file)
    return shown_file(channel, channel.files[0])


def _coded(
    stored: Mapping[str, Stored],
    classes: tuple[str, ...],
    settings: ReadingSettings,
    find: Callable[[str, str], str],
) -> dict[str, Stored]:
    """Return this worker's channels with the codes of the classes as labels. Raises UserError for others."""
    own = {name: kept.summary for name, kept in stored.items()}
    check_classes(own, classes, settings.class_labels, find)
    return {name: with_codes(kept, classes) for name, kept in stored.items()}


def _place_of_label(
    channels: list[Channel],
    settings: ReadingSettings,
    opened: Callable[[Channel, ReadingSettings], Reader],
    name: str,
    label: str,
) -> str:
    """Return the file and row of the first row of a channel with a label, as messages show it."""
    channel = next(channel for channel in channels if channel.name == name)
    for file in channel.files if channel.mode != "Pipe" else ():
        own = settings.with_coder()
        reader = opened(replace(channel, files=(file,)), own)
        before = 0
        for batch in reader.batches(() if reader.can_repeat else None):
            words = own.coder.words if own.coder else ()
            code = words.index(label) if label in words else None
            found = np.flatnonzero(batch.roles["label"] == code)
            if len(found):
                return f"{shown_file(channel, file)}, row {before + int(found[0]) + 1}"
            before += batch.rows
    return f"channel {name}"


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
            if rows.dropped:
                log(f"Channel {name}: dropped {counted(rows.dropped, 'row')} without a valid label.")
            columns = f" and {len(loaded.schema.names)} columns" if name == "train" else ""
            log(f"{name.capitalize()} matrix has {rows.rows} rows{columns}")
