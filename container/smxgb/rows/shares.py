"""Shares: which files, or parts of files, each worker reads, so that each row is read by one of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.rows.readers import can_be_cut
from smxgb.rows.worker_group import COUNT, FLAG, TEXT
from smxgb.wording import printable, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.job import Channel, DataFile
    from smxgb.rows.worker_group import Group

SAMPLED_FILES = 20
SAMPLED_BYTES = 65_536
"""Equal lists of names and sizes are believed to be equal files if so many bytes at both ends of so many
files agree."""


@dataclass(frozen=True)
class Share:
    """What this worker reads of a channel, and the line of the log that says why."""

    channel: Channel
    note: str


def share(channel: Channel, group: Group, *, whole: bool) -> Share:
    """Return this worker's share of a channel, whose files are those that its host holds.

    Workers that hold the same files, whatever the channel's configuration says of them, split them. `whole`
    says that no file may be cut, since rows that belong together stand in one.

    Raises UserError for pipes that bring all hosts the same rows, and for a channel that is said to be on all
    hosts, and is not.
    """
    if channel.mode == "Pipe":
        if group.size > 1 and channel.distribution == "FullyReplicated":
            raise UserError(
                f"channel {channel.name}: each of the {group.size} workers would train on all rows of its "
                "pipe, for the channel is FullyReplicated: use ShardedByS3Key, or input mode FastFile."
            )
        return Share(channel, f"Channel {channel.name}: this worker reads its host's pipe.")
    holders = _holders(channel, group)
    replicated = group.gather(_is_replicated(channel), FLAG)
    if any(replicated):
        _check_replicas(channel, group, holders)
    place, workers = holders.index(group.rank), len(holders)
    files = split(channel, place, workers, whole=whole)
    found = group.gather(_have_quotes(channel, files), FLAG)
    quoted = any(found[rank] for rank in holders)
    if quoted:
        files = _dealt(channel.files, place, workers)
    note = f"Channel {channel.name}: this worker reads {_shown(channel.files, files)}"
    if workers > 1:
        names = ", ".join(dict.fromkeys(group.hosts[rank] for rank in holders))
        note += f"; its {workers} workers split the same files, which they all hold: {names}"
        note += "; none is cut, for text in them is quoted" if quoted else ""
    elif group.size > 1 and channel.distribution == "FullyReplicated" and files:
        note += "; no other worker holds the same files"
    return Share(replace(channel, files=files), f"{note}.")


def split(channel: Channel, index: int, workers: int, *, whole: bool = False) -> tuple[DataFile, ...]:
    """Return the files that worker `index` of so many with the same files reads, balanced by bytes.

    With fewer files than workers, the bytes of all files are dealt out evenly; a file's part holds the
    records that begin in it, or as large a part of its rows.
    """
    if len(channel.files) >= workers or whole or not all(can_be_cut(channel, file) for file in channel.files):
        return _dealt(channel.files, index, workers)
    total = channel.size
    begin, end = total * index // workers, total * (index + 1) // workers
    parts = []
    for file in channel.files:
        first, last = max(begin, 0), min(end, file.size)
        if first < last:
            parts.append(file.cut(first, last))
        begin, end = begin - file.size, end - file.size
    return tuple(parts)


def _dealt(files: Sequence[DataFile], index: int, workers: int) -> tuple[DataFile, ...]:
    """Deal out whole files, the largest first, each to the worker with the fewest bytes so far."""
    loads = [0] * workers
    mine = set()
    for number in sorted(range(len(files)), key=lambda number: -files[number].size):
        worker = loads.index(min(loads))
        loads[worker] += files[number].size
        if worker == index:
            mine.add(number)
    return tuple(file for number, file in enumerate(files) if number in mine)


def _have_quotes(channel: Channel, files: Sequence[DataFile]) -> bool:
    """Return whether text is quoted in this worker's parts of files: then they can't be cut after all.

    They are looked through where that costs little; elsewhere the reader reports a quote when it meets one.
    """
    return channel.mode == "File" and any(file.is_part and not can_be_cut(channel, file) for file in files)


def _holders(channel: Channel, group: Group) -> list[int]:
    """Return the ranks of the workers that hold the same files as this one, itself among them."""
    lists = group.gather(_list_digest(channel), TEXT)
    mine = lists[group.rank]
    has_twin = bool(channel.files) and lists.count(mine) > 1
    samples = group.gather(_sample_digest(channel) if has_twin else None, TEXT)
    if not has_twin:
        return [group.rank]
    key = mine, samples[group.rank]
    return [rank for rank, found in enumerate(zip(lists, samples, strict=True)) if found == key]


def _is_replicated(channel: Channel) -> bool:
    return channel.is_stated and channel.distribution == "FullyReplicated"


def _check_replicas(channel: Channel, group: Group, holders: Sequence[int]) -> None:
    """Raise UserError if not all hosts hold the same files: rows that two have would count twice."""
    if min(group.gather(len(holders), COUNT)) == group.size:
        return
    mine = {_name(channel, file): file.size for file in channel.files}
    first = dict(json.loads(group.broadcast(json.dumps(mine).encode())))
    different = sorted(name for name in mine.keys() | first.keys() if mine.get(name) != first.get(name))
    found: str | None = None
    if different:
        name = different[0]
        found = (
            f"{printable(name)} {_state(first.get(name))} on {group.hosts[0]} and {_state(mine.get(name))} on"
        )
    elif 0 not in holders:
        found = f"files of the same names and sizes hold other bytes on {group.hosts[0]} than on"
    texts = group.gather(found, TEXT)
    host, text = next((host, text) for host, text in zip(group.hosts, texts, strict=True) if text)
    raise UserError(
        f"channel {channel.name} is FullyReplicated, but its hosts hold different files: {text} {host}. Set "
        "S3DistributionType=ShardedByS3Key if each host has its own files, or give all hosts the same.",
        origin="everywhere",
    )


def _state(size: int | None) -> str:
    return "is missing" if size is None else f"has {size:,} bytes"


def _name(channel: Channel, file: DataFile) -> str:
    return str(file.path.relative_to(channel.folder))


def _list_digest(channel: Channel) -> str:
    digest = hashlib.sha256()
    for file in channel.files:
        digest.update(f"{_name(channel, file)}\0{file.size}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _sample_digest(channel: Channel) -> str:
    """Return a digest of both ends of a few files, spread over the list."""
    files = channel.files
    step = -(-len(files) // SAMPLED_FILES)
    digest = hashlib.sha256()
    for file in files[::step]:
        with file.path.open("rb") as stream:
            digest.update(stream.read(SAMPLED_BYTES))
            stream.seek(max(0, file.size - SAMPLED_BYTES))
            digest.update(stream.read(SAMPLED_BYTES))
    return digest.hexdigest()


def _shown(held: Sequence[DataFile], mine: Sequence[DataFile]) -> str:
    size = readable_bytes(sum(file.size for file in mine))
    if any(file.is_part for file in mine):
        return f"parts of {len(mine)} of {len(held)} files, {size}"
    return f"{len(mine):,} of {len(held):,} files, {size}"
