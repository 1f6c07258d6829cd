"""The rehearsal (`smxgb check`): a job up to one batch of each channel, and what the rest would need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from smxgb.environment import memory_available
from smxgb.errors import Mistakes
from smxgb.examination import examine
from smxgb.logbook import start_block
from smxgb.progress import log
from smxgb.readers import open_reader
from smxgb.store import Summary, no_rows, summarise

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
            # A batch without rows is the only one: it comes after all rows were left out.
            if not seen.rows:
                mistakes.add(no_rows(channel.name, seen))
        if schema is None:
            break
    if schema is not None:
        with mistakes.collect():
            examined = examine(
                job.parameters,
                schema,
                labels,
                shapes,
                rows=shapes["train"].rows if "train" in shapes else 0,
                available=memory_available(),
            )
            for line in examined.describe():
                log(line)
    mistakes.raise_any()
    log("Nothing was found that would stop the job. Only the first rows of each channel were read.")
