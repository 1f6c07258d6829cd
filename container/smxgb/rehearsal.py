"""The rehearsal (`smxgb check`): a job up to one batch of each channel, and what the rest would need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from smxgb import gpu
from smxgb.batch import Schema
from smxgb.errors import Mistakes, UserError
from smxgb.examination import examine
from smxgb.groups import Runs
from smxgb.log import log
from smxgb.logbook import start_block
from smxgb.machine import memory_available
from smxgb.readers import open_reader
from smxgb.store import Summary, no_rows, reading_bytes, summarise

if TYPE_CHECKING:
    from smxgb.channels import Channel
    from smxgb.job import Job
    from smxgb.labels import Labels
    from smxgb.store import Shape


@dataclass
class _Seen:
    """What the first batches have shown: the shapes of the channels, train first, and of a worker's part."""

    schema: Schema | None = None
    shapes: dict[str, Shape] = field(default_factory=dict)
    shares: dict[str, Shape] = field(default_factory=dict)
    labels: dict[str, Labels] = field(default_factory=dict)
    reading: int = 0


def rehearse(job: Job) -> Shape:
    """Log what the job would do; return the shape of the rows of train.

    Raises:
        UserError: With everything that was found to be wrong.
    """
    for line in start_block(job):
        log(line)
    hosts = len(job.hosts.names)
    where = "on this host" if hosts == 1 else f"on {hosts} hosts"
    log(f"Workers: {hosts * job.team.workers}, {where}, each with {job.threads} threads.")
    mistakes = Mistakes()
    seen = _Seen()
    for channel in job.channels:
        with mistakes.collect():
            _look_at(channel, job, seen)
        if seen.schema is None:
            break
    known = not any(mistakes)
    names = _names(seen)
    if seen.schema is not None and names:
        with mistakes.collect():
            examined = examine(
                job.parameters,
                replace(seen.schema, names=names),
                seen.labels,
                seen.shares,
                rows=next((shape.rows for shape in seen.shapes.values()), 0),
                reading=seen.reading,
                available=memory_available() // job.team.workers,
                gpu_available=gpu.free_memory() if job.team.device.value == "cuda" else None,
            )
            # A plan for the rows of some channels would be wrong.
            for line in examined.describe() if known else ():
                log(line)
    mistakes.raise_any()
    log("Nothing was found that would stop the job. Only the first rows of each channel were read.")
    return seen.shapes["train"]


def _names(seen: _Seen) -> tuple[str, ...]:
    """Return the names of the features; none as long as only rows would tell, and could not be read."""
    if seen.schema is None or seen.schema.names or "train" not in seen.shapes:
        return seen.schema.names if seen.schema else ()
    return Schema.unnamed(seen.shapes["train"].columns).names


def _look_at(channel: Channel, job: Job, seen: _Seen) -> None:
    """Read the first batch of a channel."""
    reader = open_reader(channel, job.data, threads=job.threads, like=seen.schema)
    own = reader.schema()
    seen.schema = seen.schema or own
    runs = Runs()
    batch = next(runs.watch(reader.batches(own)), None)
    summary = Summary() if batch is None else summarise(batch)
    # A batch without rows is the only one: it comes after all rows were left out.
    if not summary.rows:
        raise UserError(no_rows(channel.name, summary))
    if runs.are_whole:
        runs.groups(channel.name)
    # libsvm has no names: the highest index of the rows is all that is known of its width.
    columns = len(own.names) or (summary.extent.highest or 0 if summary.extent else 0)
    rows = reader.expected_rows()
    shape = seen.shapes[channel.name] = replace(summary.shape(columns), rows=rows)
    hosts = len(job.hosts.names) if channel.distribution == "FullyReplicated" else 1
    seen.shares[channel.name] = replace(shape, rows=-(-rows // (hosts * job.team.workers)))
    seen.reading = max(seen.reading, reading_bytes(reader, own))
    exactly = "" if reader.cheap_to_repeat else "about "
    log(f"Channel {channel.name}: {exactly}{rows:,} rows and {columns} columns.")
    if summary.label:
        seen.labels[channel.name] = summary.label
