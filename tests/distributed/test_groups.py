"""Queries of a ranking whose rows several workers have: named with their files, whoever the workers are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from tests.distributed.dask_hosts import dask_hosts
from tests.distributed.hosts import hosts_of
from tests.opt_ml import Outcome, Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = {"objective": "rank:ndcg", "num_round": 2, "group_column": "query", "eval_metric": "ndcg"}
CURE = "A worker must have the whole group: write all rows of a group into one file."


def rows_of(queries: list[int], rows: int = 20) -> pd.DataFrame:
    """Return some rows for each query."""
    query = np.repeat(queries, rows)
    x = np.random.default_rng(len(queries)).normal(size=len(query)).astype(np.float32)
    return pd.DataFrame({"y": (x > 0).astype(np.float32), "query": query, "x": x})


def libsvm(frame: pd.DataFrame, name: str) -> Source:
    lines = [f"{row.y:g} qid:{row.query} 0:{row.x}" for row in frame.itertuples()]
    return Source({f"{name}.libsvm": "\n".join(lines).encode()}, "libsvm")


def named(frame: pd.DataFrame, name: str) -> Source:
    return csv(frame, header=True, name=f"{name}.csv")


def table(frame: pd.DataFrame, name: str) -> Source:
    return parquet(frame, name=f"{name}.parquet")


def both(*sources: Source) -> Source:
    return Source(
        {name: data for source in sources for name, data in source.files.items()}, sources[0].content_type
    )


def assert_refused(outcomes: list[Outcome], words: str) -> None:
    assert [outcome.code for outcome in outcomes] == [2] * len(outcomes), outcomes[0].log
    for outcome in outcomes:
        assert outcome.failure == f"UserError: channel train: {words}. {CURE}"


@pytest.mark.parametrize("write", [named, table, libsvm])
def test_a_query_on_two_hosts_is_named_with_the_file_of_each(
    tmp_path: Path, write: Callable[[pd.DataFrame, str], Source]
) -> None:
    shards = [
        {"train": both(write(rows_of([1, 2]), "a"), write(rows_of([9, 3]), "b"))},
        {"train": both(write(rows_of([4, 5]), "c"), write(rows_of([6, 7]), "d"))},
        {"train": both(write(rows_of([8, 10]), "c"), write(rows_of([11, 9]), "d"))},
    ]
    settings = SETTINGS if write is not libsvm else {**SETTINGS, "group_column": "None"}
    with hosts_of(tmp_path, shards, settings, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    end = next(iter(shards[0]["train"].files)).removeprefix("a")
    assert_refused(
        outcomes,
        f"the rows of group 9 are on several workers: in train/b{end} of host 127.0.0.1 and train/d{end} of "
        "host 127.0.0.3",
    )


def test_queries_on_two_workers_of_one_host_are_counted(tmp_path: Path) -> None:
    files = both(table(rows_of([1, 2, 5, -7]), "a"), table(rows_of([5, 3, -7, 6]), "b"))
    with dask_hosts(tmp_path, [{"train": files}], SETTINGS) as job:
        outcomes = job.run()
    assert_refused(
        outcomes,
        "the rows of group -7 (and of 1 more) are on several workers: in "
        "train/a.parquet of host 127.0.0.1 and train/b.parquet of host 127.0.0.1",
    )


def test_a_query_may_be_in_train_and_validation_and_each_host_have_its_own(tmp_path: Path) -> None:
    shards = [
        {"train": named(rows_of([1, 2]), "a"), "validation": named(rows_of([3]), "v")},
        {"train": named(rows_of([4, 3]), "a"), "validation": named(rows_of([1]), "v")},
        {"train": Source({"_SUCCESS": b"x"}, None), "validation": Source({"_SUCCESS": b"x"}, None)},
    ]
    with hosts_of(tmp_path, shards, SETTINGS, distribution="ShardedByS3Key") as job:
        outcomes = job.run()
    assert [outcome.code for outcome in outcomes] == [0, 0, 0], outcomes[0].log
    assert re.search(r"^\[1\]\ttrain-ndcg:[\d.]+\tvalidation-ndcg:", outcomes[0].log, re.MULTILINE)
