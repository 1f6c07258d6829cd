"""The rehearsal (`smxgb check`): a job up to one batch of each channel, and what the rest would need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from smxgb.environment import memory_available
from smxgb.errors import Mistakes
from smxgb.hyperparameters import resolve_constraints
from smxgb.labels import check_labels
from smxgb.logbook import start_block
from smxgb.plan import make_plan
from smxgb.progress import log
from smxgb.readers import open_reader
from smxgb.store import Summary, summarise

if TYPE_CHECKING:
    from smxgb.batch import Schema
    from smxgb.job import Job
    from smxgb.store import Labels, Shape


def rehearse(job: Job) -> None:
    """Log what the job would do.

    Raises:
        UserError: With everything that was found to be wrong.
    """
    for line in start_block(job):
        log(line)
    mistakes = Mistakes()
    shapes: dict[str, Shape] = {}
    labels: dict[str, Labels] = {}
    schema: Schema | None = None
    for channel in job.channels:
        with mistakes.collect():
            reader = open_reader(channel, job.data, threads=job.threads, like=schema)
            schema = schema or reader.schema()
            seen = next((summarise(batch) for batch in reader.batches(schema)), Summary())
            columns = len(schema.names)
            shapes[channel.name] = replace(seen.shape(columns), rows=reader.expected_rows())
            log(f"Channel {channel.name}: about {reader.expected_rows():,} rows and {columns} columns.")
            if seen.label:
                labels[channel.name] = seen.label
        if schema is None:
            break
    if schema is not None:
        with mistakes.collect():
            resolve_constraints(job.parameters.settings, schema.names)
        with mistakes.collect():
            check_labels(job.parameters, labels, sum(shape.rows for shape in shapes.values()))
        with mistakes.collect():
            plan = make_plan(job.parameters, shapes, memory_available())
            log(plan.describe())
            plan.check()
    mistakes.raise_any()
    log("Nothing was found that would stop the job. Only the first rows of each channel were read.")
