"""The dry run (`smxgb check`): a job up to the first batch of each channel, and the memory it would need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes, UserError
from smxgb.job import overlaps
from smxgb.log import log, notice
from smxgb.rows import (
    Runs,
    Summary,
    check_classes,
    count_bins,
    count_features,
    describe_classes,
    no_rows,
    open_reader,
    reading_bytes,
    reading_settings,
    settle,
    settle_classes,
    summarise,
    with_labels,
    with_words,
)
from smxgb.scratch import scratch_place
from smxgb.training import XGBOOST_MAX_BIN, Seen, check_rows, checkpoint_outlook, free_memory, start_block
from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.job import Channel, Job
    from smxgb.rows import Declared, Reader, ReadingSettings, Schema, Shape
    from smxgb.training import Checked


@dataclass(frozen=True)
class _Look:
    """What the first rows of a channel have shown.

    `rows` is the number of this host's rows; `exact` says that it is counted, not estimated. `whole` says
    that the rows that were read are all rows of the job. `reading` is the bytes that reading takes, `bins`
    the histogram bins of all features.
    """

    channel: Channel
    summary: Summary
    rows: int
    exact: bool
    whole: bool
    reading: int
    bins: int


def perform_dry_run(job: Job) -> Shape:
    """Log what the job would do; return the shape of the rows of train.

    Raises:
        UserError: With everything that was found to be wrong.
    """
    for line in start_block(job):
        log(line)
    hosts = len(job.hosts.names)
    where = "on this host" if hosts == 1 else f"on {hosts} hosts"
    log(f"Workers: {hosts * job.team.workers}, {where}, each with {counted(job.threads, 'thread')}.")
    for text in overlaps(job.channels.train, job.channels.validation):
        notice(text)
    mistakes = Mistakes()
    declared, looks = _look_at_all(job, mistakes)
    # A plan for the rows of some channels would be wrong.
    is_complete = not any(mistakes)
    classes: tuple[str, ...] = ()
    if job.parameters.settings.class_labels:
        with mistakes.collect():
            looks, classes = _with_classes(declared, looks, job)
        mistakes.raise_any()  # of labels without codes nothing else can be said
    shapes: Mapping[str, Shape] = {}
    if declared is not None:
        schema = declared.schema
        with mistakes.collect():
            schema, shapes = _settled(declared, looks, job)
            schema = schema and replace(schema, classes=classes)
        with mistakes.collect():
            checked = _check(schema, looks, shapes, job)
            for line in checked.describe() if is_complete else ():
                log(line)
            for text in checked.notes if is_complete else ():
                notice(text)
            _tell_checkpoints(job, schema, looks, checked.classes)
    mistakes.raise_any()
    log("Nothing was found that would stop the job. Only the first rows of each channel were read.")
    return shapes["train"]


def _look_at_all(job: Job, mistakes: Mistakes) -> tuple[Declared | None, dict[str, _Look]]:
    """Return what train declares, None if it can't be read, and a look at each channel that can be."""
    settings = reading_settings(job.parameters.settings, job.channels)
    declared: Declared | None = None
    looks: dict[str, _Look] = {}
    for channel in job.channels:
        with mistakes.collect():
            own = settings.with_coder()
            reader = open_reader(channel, own, threads=job.threads, like=declared)
            declared = declared or reader.declared
            looks[channel.name] = _look_at(channel, reader, job, own)
        if declared is None:
            break
    return declared, looks


def _with_classes(
    declared: Declared | None, looks: dict[str, _Look], job: Job
) -> tuple[dict[str, _Look], tuple[str, ...]]:
    """Return looks whose labels are the codes of the classes that the first rows show, and these classes.

    Where not all rows of train were read, labels of other channels may be in the rest.
    """
    wanted = job.parameters.settings.class_labels
    if declared is None or "train" not in looks:
        return looks, ()
    seen = {name: look.summary for name, look in looks.items()}
    if not looks["train"].whole:
        seen["train"] = reduce(Summary.merge, seen.values())
    classes = settle_classes(declared.layout, seen, wanted, job.parameters.settings.objective)
    check_classes(seen, classes, wanted, lambda name, _: f"channel {name}")
    log(describe_classes(classes))
    return {
        name: replace(look, summary=with_labels(look.summary, classes)) for name, look in looks.items()
    }, classes


def _look_at(channel: Channel, reader: Reader, job: Job, settings: ReadingSettings) -> _Look:
    """Read the first batch of a channel, and see whether there is another."""
    runs = Runs()
    batches = runs.watch(reader.batches())
    batch = next(batches, None)
    summary = Summary() if batch is None else summarise(batch)
    summary = with_words(summary, settings.coder)
    bins = 0 if batch is None else count_bins(batch, job.parameters.settings.max_bin or XGBOOST_MAX_BIN)
    # Only if no row is left does a reader yield a batch without rows.
    if not summary.rows:
        raise UserError(no_rows(channel.name, summary))
    if runs.are_whole:
        runs.groups(channel.name)
    is_all = next(batches, None) is None
    is_shard = channel.distribution != "FullyReplicated" and len(job.hosts.names) > 1
    return _Look(
        channel,
        summary,
        summary.rows if is_all else max(reader.expected_rows, summary.rows),
        exact=is_all or reader.is_exact,
        whole=is_all and not is_shard,
        reading=reading_bytes(reader),
        bins=bins,
    )


def _settled(
    declared: Declared, looks: Mapping[str, _Look], job: Job
) -> tuple[Schema | None, dict[str, Shape]]:
    """Return the features, None if the first rows do not tell their number, and the channels' shapes."""
    summaries = {name: look.summary for name, look in looks.items()}
    types = {name: look.channel.content_type for name, look in looks.items()}
    indexing = job.parameters.settings.libsvm_indexing
    count, _ = count_features(summaries, types, indexing)
    schema = declared.schema
    if "train" in looks and (schema or all(look.whole for look in looks.values())):
        schema = settle(declared, summaries, types, indexing)
    shapes = {}
    for name, look in looks.items():
        shapes[name] = replace(look.summary.shape(count), rows=look.rows)
        columns = f"{count}" if schema else f"at least {count}"
        log(f"Channel {name}: {'' if look.exact else 'about '}{look.rows:,} rows and {columns} columns.")
    return schema, shapes


def _check(
    schema: Schema | None, looks: Mapping[str, _Look], shapes: Mapping[str, Shape], job: Job
) -> Checked:
    whole = "train" in looks and all(look.whole for look in looks.values())
    summaries = {name: look.summary for name, look in looks.items()}
    seen = Seen(
        schema,
        {name: summary.label for name, summary in summaries.items() if summary.label},
        {name: _share(shape, looks[name].channel, job) for name, shape in shapes.items()},
        max((look.reading for look in looks.values()), default=0),
        summaries if whole else None,
        looks["train"].bins if "train" in looks else None,
    )
    place = scratch_place(job.parameters.settings.spool_dir, job.paths.base)
    return check_rows(job.parameters, seen, free_memory(job.team, place))


def _tell_checkpoints(
    job: Job, schema: Schema | None, looks: Mapping[str, _Look], classes: int | None
) -> None:
    """Log what the job will do with checkpoints, and what it would do with those that are there."""
    rows = {name: look.summary for name, look in looks.items() if look.whole}
    for line in checkpoint_outlook(job, schema, rows, classes):
        log(line)


def _share(shape: Shape, channel: Channel, job: Job) -> Shape:
    """Return the shape of one worker's share of a channel."""
    hosts = len(job.hosts.names) if channel.distribution == "FullyReplicated" else 1
    return replace(shape, rows=-(-shape.rows // (hosts * job.team.workers)))
