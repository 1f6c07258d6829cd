"""Agreement: what all workers must have in common before a matrix is built, settled inside the group.

Each function is called by all workers, and has one outcome for all of them: a disagreement is the same error
everywhere, which names host, file and column.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter

from smxgb.errors import Mistakes, UserError
from smxgb.job import ContentType, Name
from smxgb.rows.columns import aligned
from smxgb.rows.schema import Declared, Layout
from smxgb.rows.summary import Summary, no_rows
from smxgb.rows.worker_group import COUNT, TEXT
from smxgb.wording import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smxgb.job import Channel, Channels
    from smxgb.rows.batch import GroupArray
    from smxgb.rows.query_groups import QueryGroups
    from smxgb.rows.worker_group import Group

COMPARED = 1 << 20
"""Ids of groups, of all workers together, that are compared at a time."""

SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 by the golden ratio (Knuth, The Art of Computer Programming, 6.4: multiplicative hashing)."""


@dataclass(frozen=True)
class _Held:
    """What a host holds of a channel: how many files, of which type, and how the type was found."""

    files: int
    content_type: ContentType
    why: str


@dataclass(frozen=True)
class _Offer:
    """What a worker's files declare, None if it has none; its first file; and what is wrong with them."""

    declared: Declared | None
    source: str
    mistakes: list[str]


HELD = TypeAdapter(dict[Name, _Held])
OFFER = TypeAdapter(_Offer)
SUMMARIES = TypeAdapter(dict[str, Summary])


@contextmanager
def by_all() -> Iterator[None]:
    """Mark a failure raised inside as one that all workers find, whose text names the guilty host."""
    try:
        yield
    except UserError as error:
        error.origin = "everywhere"
        raise


def agree_on_channels(channels: Channels, group: Group) -> list[Channel]:
    """Return the channels that have files on any host, as this host holds them: maybe without a file.

    Raises UserError if a channel has files on no host, or of different types.
    """
    held = {channel.name: channel for channel in channels}
    own = {
        name: _Held(len(channel.files), channel.content_type, printable(channel.why))
        for name, channel in held.items()
    }
    offers = group.gather(own, HELD)
    agreed = []
    mistakes = Mistakes()
    for name in ("train", "validation"):
        of_name = {
            host: offer[name] for host, offer in zip(group.hosts, offers, strict=True) if name in offer
        }
        types = {host: offer for host, offer in of_name.items() if offer.files}
        if of_name and not types:
            mistakes.add(
                f"channel '{name}' holds no data file on any of the hosts {', '.join(group.hosts)}: check "
                "its S3 address."
            )
        if len({offer.content_type for offer in types.values()}) > 1:
            listed = ", ".join(
                f"{offer.content_type} on {host} ({offer.why})" for host, offer in types.items()
            )
            mistakes.add(f"channel '{name}' holds {listed}: its files must be of one type.")
        if types:
            mine = held.get(name) or replace(channels.train, name=name, files=(), skipped=())
            agreed.append(replace(mine, content_type=next(iter(types.values())).content_type))
    mistakes.raise_any("everywhere")
    return agreed


def agree_on_features(own: Declared | None, source: str, mistakes: Mistakes, group: Group) -> Declared:
    """Return what the files of the first worker that has any of `train` declare; `own` None: this has none.

    `source` is the first file of this worker as messages show it, `mistakes` what is wrong with its files.
    Raises UserError if the columns of another worker's files don't fit, or any worker has found mistakes.
    """
    offers = group.gather(_Offer(own, source, list(mistakes)), OFFER)
    found = Mistakes()
    first: tuple[Layout, str] | None = None
    # Sparse files tell their width when all rows are read, and records need no names.
    nameless: dict[int | None, str] = {}
    for host, offer in zip(group.hosts, offers, strict=True):
        place = f"host {host}, " if group.size > 1 else ""
        for text in offer.mistakes:
            found.add(f"{place}{text}")
        if offer.declared is None:
            continue
        layout = offer.declared.layout
        if layout is None:
            nameless.setdefault(offer.declared.width, f"{place}{offer.source}")
        elif first is None:
            first = layout, f"{place}{offer.source}"
        else:
            with found.collect():
                aligned(first[0], layout.columns, layout.width, f"{place}{offer.source}", first[1])
    if len(nameless) > 1:
        listed = " and ".join(f"{source} has {width or 0}" for width, source in nameless.items())
        found.add(f"{listed} features: all files need the same (0 means sparse records).")
    with by_all():
        found.raise_any()
        if nameless:
            return Declared(width=next(iter(nameless)))
        if first is None:
            raise UserError("the train channel holds no rows: check its S3 address.")
    return Declared(first[0])


def agree_on_rows(own: Mapping[str, Summary], group: Group) -> list[dict[str, Summary]]:
    """Return the summaries of all workers' rows, channel by channel, by rank.

    Raises UserError if a channel has no row at all, or has weights on some workers only.
    """
    by_rank = group.gather(dict(own), SUMMARIES)
    mistakes = Mistakes()
    for name in own:
        # A host may have several workers: one of them without rows must not hide another.
        with_rows = [
            (host, found[name]) for host, found in zip(group.hosts, by_rank, strict=True) if found[name].rows
        ]
        if not with_rows:
            mistakes.add(no_rows(name, reduce(Summary.merge, (found[name] for found in by_rank))))
        weighted = dict.fromkeys(host for host, summary in with_rows if summary.weights is not None)
        others = dict.fromkeys(host for host, summary in with_rows if summary.weights is None)
        if weighted and others:
            mistakes.add(
                f"channel {name} has weights on {', '.join(weighted)} and none on {', '.join(others)}: all "
                "files of a channel need the weight column, or none."
            )
    mistakes.raise_any("everywhere")
    return by_rank


def agree_on_groups(
    channel: str, own: QueryGroups | None, group: Group, file_of: Callable[[int], str]
) -> None:
    """Raise UserError if rows of one group are on several workers, each of which would take it for a whole.

    All ids are compared, in portions of about `COMPARED`. A worker holds 50 MB for one of them, and 24 bytes
    for each group of its own. `file_of` finds a file of this worker that holds a group.
    """
    if group.size == 1:
        return
    ids = np.zeros(0, np.int64) if own is None else own.ids
    portions = -(-sum(group.gather(len(ids), COUNT)) // COMPARED)
    # Equal ids fall into one portion, wherever they are; consecutive ones are spread by a multiplication.
    portion = (ids.view(np.uint64) * SPREAD >> np.uint64(32)) % np.uint64(max(1, portions))
    shared = [_shared(ids[portion == number], group) for number in range(portions)]
    split = np.sort(np.concatenate([*shared, np.zeros(0, np.int64)]))
    if not len(split):
        return
    mine = f"{file_of(int(split[0]))} of host {group.hosts[group.rank]}" if split[0] in ids else None
    places = [place for place in group.gather(mine, TEXT) if place]
    more = f" (and of {len(split) - 1:,} more)" if len(split) > 1 else ""
    raise UserError(
        f"channel {channel}: the rows of group {split[0]}{more} are on several workers: in "
        f"{' and '.join(places)}. A worker must have the whole group: write all rows of a group into one "
        "file.",
        origin="everywhere",
    )


def _shared(ids: GroupArray, group: Group) -> GroupArray:
    """Return which of all workers' ids, each worker's being different, more than one worker has."""
    parts = group.gather_bytes(ids.tobytes())
    every, workers = np.unique(np.frombuffer(b"".join(parts), np.int64), return_counts=True)
    return every[workers > 1]


def together(summaries: list[dict[str, Summary]]) -> dict[str, Summary]:
    """Return the summary of all workers' rows of each channel."""
    return {
        name: reduce(Summary.merge, (of_worker[name] for of_worker in summaries)) for name in summaries[0]
    }
