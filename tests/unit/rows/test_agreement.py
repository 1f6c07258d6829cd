"""What workers agree on before a matrix is built; the workers are threads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.threads import by_all

from smxgb.errors import Mistakes
from smxgb.job import Channel, Channels, DataFile
from smxgb.rows.agreement import agree_on_channels, agree_on_features, agree_on_groups, agree_on_rows
from smxgb.rows.query_groups import QueryGroups
from smxgb.rows.schema import Declared, Layout
from smxgb.rows.summary import Extent, Summary
from smxgb.settings import Labels

HOSTS = ("a", "b", "c")
FILE = DataFile(Path("/data/train/1"), 9)
TRAIN = Channel("train", Path("/data/train"), "parquet", "File", "ShardedByS3Key", (FILE,), "given")
LAYOUT = Layout(("y", "age"), 2, (1,), (("label", 0),), (1,))
SEEN = Summary(
    3,
    1,
    Labels(0, 2, whole=True, different=(0, 1, 2)),
    None,
    3.5,
    2,
    Extent(None, 4),
    {"c": frozenset({"é", "a"})},
    frozenset({"label", "weight"}),
)


def test_a_host_without_files_takes_the_type_of_the_others_and_joins_their_channels() -> None:
    validation = replace(TRAIN, name="validation")
    nothing = replace(TRAIN, content_type="csv", files=(), why="no file tells")
    held = [Channels(nothing, None), Channels(TRAIN, None), Channels(TRAIN, validation)]
    agreed = by_all(lambda group: agree_on_channels(held[group.rank], group), HOSTS)
    for channels in agreed:
        assert [(channel.name, channel.content_type) for channel in channels] == [  # type: ignore[union-attr]
            ("train", "parquet"),
            ("validation", "parquet"),
        ]
    assert [len(channel.files) for channel in agreed[0]] == [0, 0]  # type: ignore[union-attr]


def test_files_of_two_types_and_channels_without_a_file_are_refused_together() -> None:
    empty = replace(TRAIN, name="validation", files=())
    other = replace(TRAIN, content_type="csv", why="by the extension of x.csv")
    held = [Channels(TRAIN, empty), Channels(other, None), Channels(TRAIN, None)]
    types = (
        "channel 'train' holds parquet on a (given), csv on b (by the extension of x.csv), parquet on c "
        "(given): its files must be of one type."
    )
    none = "channel 'validation' holds no data file on any of the hosts a, b, c: check its S3 address."
    agreed = by_all(lambda group: agree_on_channels(held[group.rank], group), HOSTS)
    assert agreed == [(types, none)] * 3


def test_the_first_worker_with_a_file_says_what_all_files_declare() -> None:
    other = replace(LAYOUT, columns=("age", "y"), features=(0,), roles=(("label", 1),), categorical=(0,))
    own = [None, Declared(LAYOUT), Declared(other)]
    agreed = by_all(lambda group: agree_on_features(own[group.rank], "train/1", Mistakes(), group), HOSTS)
    assert agreed == [Declared(LAYOUT)] * 3


@pytest.mark.parametrize("width", [None, 3])
def test_records_and_sparse_rows_declare_no_names(width: int | None) -> None:
    own = [None, Declared(width=width), Declared(width=width)]
    agreed = by_all(lambda group: agree_on_features(own[group.rank], "train/1", Mistakes(), group), HOSTS)
    assert agreed == [Declared(width=width)] * 3


def test_files_that_declare_other_features_are_named_with_their_host_and_all_mistakes() -> None:
    own = [Declared(LAYOUT), Declared(replace(LAYOUT, columns=("y", "size"))), None]
    found = [Mistakes(), Mistakes(), Mistakes()]
    found[2].add("train/1 is broken.")
    columns = (
        "host b, train/1 lacks column 1 ('age') of host a, train/1 and has column 1 ('size'), which host a, "
        "train/1 does not have: it has 2 columns, host a, train/1 has 2. Every file of every channel needs "
        "the same columns, in any order."
    )
    agreed = by_all(
        lambda group: agree_on_features(own[group.rank], "train/1", found[group.rank], group), HOSTS
    )
    assert agreed == [(columns, "host c, train/1 is broken.")] * 3


def test_dense_and_sparse_records_are_refused() -> None:
    own = [Declared(width=3), Declared(), Declared(width=3)]
    refused = (
        "host a, train/1 has 3 and host b, train/1 has 0 features: all files need the same (0 means sparse "
        "records)."
    )
    agreed = by_all(lambda group: agree_on_features(own[group.rank], "train/1", Mistakes(), group), HOSTS)
    assert agreed == [(refused,)] * 3


def test_a_channel_without_a_file_on_any_worker_has_no_rows() -> None:
    agreed = by_all(lambda group: agree_on_features(None, "", Mistakes(), group), HOSTS)
    assert agreed == [("the train channel holds no rows: check its S3 address.",)] * 3


def test_all_workers_know_what_each_has_seen() -> None:
    own = [{"train": SEEN}, {"train": Summary()}, {"train": replace(SEEN, rows=9)}]
    assert by_all(lambda group: agree_on_rows(own[group.rank], group), HOSTS) == [own] * 3


def test_weights_on_some_workers_only_are_refused_with_channels_that_have_no_rows() -> None:
    unweighted = replace(SEEN, weights=None)
    seen = [SEEN, unweighted, SEEN]
    weights = (
        "channel train has weights on a, c and none on b: all files of a channel need the weight column, or "
        "none."
    )
    rows = (
        "channel validation has no rows, its files hold column names at most: check its S3 address and what "
        "wrote the files."
    )
    agreed = by_all(
        lambda group: agree_on_rows({"train": seen[group.rank], "validation": Summary()}, group), HOSTS
    )
    assert agreed == [(weights, rows)] * 3


@pytest.mark.parametrize(
    ("extra", "shared"), [((7, 9), None), ((7, 7), 7), ((7, 64 * 1_000_000), 64 * 1_000_000)]
)
def test_one_of_millions_of_queries_is_found_and_none_is_made_up(
    extra: tuple[int, int], shared: int | None
) -> None:
    def groups(rank: int) -> QueryGroups:
        # 3.3 million ids in two arrays, in no order, that meet in one id or none.
        ids = np.append(np.arange(rank, 3_300_000, 2, dtype=np.int64) * 64, extra[rank])
        ids = np.random.default_rng(rank).permutation(ids)
        return QueryGroups(ids, np.ones_like(ids), None)

    agreed = by_all(
        lambda group: agree_on_groups("train", groups(group.rank), group, lambda number: f"file {number}"),
        HOSTS[:2],
    )
    refused = (
        f"channel train: the rows of group {shared} are on several workers: in file {shared} of "
        f"host a and file {shared} of host b. A worker must have the whole group: write all rows of a group "
        "into one file."
    )
    assert agreed == [None if shared is None else (refused,)] * 2
