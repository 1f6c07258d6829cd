from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.rows.batch import Dense
from smxgb.rows.query_groups import QueryGroups, Runs
from smxgb.rows.schema import Schema
from smxgb.rows.store import Stored
from smxgb.rows.summary import Summary
from smxgb.training.matrix import MatrixOptions, build_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.training.memory_needs import MatrixKind


def batches(group: list[int], weight: list[float] | None = None, cut: int = 3) -> list[Dense]:
    """Return rows in two batches."""
    made = []
    for part in (slice(0, cut), slice(cut, None)):
        ids = np.array(group[part], np.int64)
        generator = np.random.default_rng(len(ids))
        made.append(
            Dense(
                pa.table({"a": generator.random(len(ids), np.float32)}),
                {
                    "label": generator.integers(0, 2, len(ids)).astype(np.float32),
                    "group": ids,
                    **({} if weight is None else {"weight": np.array(weight[part], np.float32)}),
                },
            )
        )
    return made


def found(group: list[int], weight: list[float] | None = None) -> QueryGroups | None:
    runs = Runs()
    for _ in runs.watch(iter(batches(group, weight))):
        pass
    return runs.groups("train")


def test_a_group_may_go_on_in_the_next_batch() -> None:
    groups = found([9, 9, 4, 4, 4, 7])
    assert groups is not None
    assert groups.sizes.tolist() == [2, 3, 1]
    assert groups.weights is None


def test_groups_whose_numbers_differ_beyond_32_bits_stay_apart() -> None:
    groups = found([1, 1 + 2**32, 1 + 2**32, 1 + 2**33, 2**63 - 1])
    assert groups is not None
    assert groups.sizes.tolist() == [1, 2, 1, 1]


def test_a_group_has_the_weight_of_its_rows() -> None:
    groups = found([9, 9, 4, 4, 4, 7], [1, 1, 2, 2, 2, 0.5])
    assert groups is not None
    assert groups.weights is not None
    assert groups.weights.tolist() == [1, 2, 0.5]


def test_rows_without_groups_have_none() -> None:
    assert Runs().groups("train") is None


@pytest.mark.parametrize(("group", "whole"), [([9, 9, 4, 4, 9, 7], False), ([9, 9, 4, 4, 4, 7], True)])
def test_a_group_that_begins_twice_is_not_whole(group: list[int], whole: bool) -> None:  # noqa: FBT001
    runs = Runs()
    for _ in runs.watch(iter(batches(group))):
        pass
    assert runs.are_whole is whole


def test_rows_of_a_group_that_weigh_differently_are_refused() -> None:
    with pytest.raises(UserError, match="the rows of group 4 have weights from 1 to 3"):
        found([9, 9, 4, 4, 4, 7], [1, 1, 1, 3, 2, 1])


@pytest.mark.parametrize("kind", ["quantile", "iterated", "whole"])
@pytest.mark.parametrize("weight", [None, [1.0, 1, 2, 2, 2, 0.5]])
def test_a_matrix_has_the_groups_that_xgboost_makes_of_all_rows_at_once(
    kind: MatrixKind, weight: list[float] | None, tmp_path: Path
) -> None:
    group = [1, 1, 2, 2, 2, 3]
    rows = batches(group, weight)
    stored = Stored(Summary(rows=6), lambda: iter(rows), found(group, weight))
    matrix = build_matrix(stored, Schema(("a",), invented=False), MatrixOptions(kind, 1), tmp_path / "cache")
    table = pa.concat_tables([batch.features for batch in rows])
    label = np.concatenate([batch.roles["label"] for batch in rows])
    plain = xgb.DMatrix(table, label, qid=group, weight=weight and [1.0, 2, 0.5])
    assert matrix.get_group().tolist() == plain.get_group().tolist()
    assert matrix.get_weight().tolist() == plain.get_weight().tolist()
