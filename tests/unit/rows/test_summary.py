from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.rows.batch import Dense
from smxgb.rows.summary import Summary, summarise
from smxgb.settings.label_domains import DISTINCT, Labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.rows.roles import RoleArray, RoleName


def batch(labels: Sequence[float], weights: Sequence[float] | None = None) -> Dense:
    features = pa.table({"a": pa.array([label if label > 0 else None for label in labels], pa.float32())})
    roles: dict[RoleName, RoleArray] = {"label": np.array(labels, np.float32)}
    if weights is not None:
        roles["weight"] = np.array(weights, np.float32)
    return Dense(features, roles)


def test_summaries_of_shares_merge_into_that_of_all_rows() -> None:
    one, other = [1.0, 2.0, 2.5], [-3.0, 2.0]
    merged = summarise(batch(one, [1, 2, 3])).merge(summarise(batch(other, [4, 5])))
    assert merged == summarise(batch(one + other, [1, 2, 3, 4, 5]))
    assert merged.label == Labels(-3, 2.5, whole=False, different=(-3, 1, 2, 2.5))
    assert merged.present == 4
    assert Summary().merge(merged) == merged.merge(Summary()) == merged


def test_many_different_labels_are_not_listed() -> None:
    few, many = list(range(DISTINCT)), list(range(DISTINCT + 1))
    assert summarise(batch(few)).label == Labels(0, DISTINCT - 1, whole=True, different=tuple(few))
    assert summarise(batch(many)).label == Labels(0, DISTINCT, whole=True, different=None)
    assert summarise(batch(few)).merge(summarise(batch([99]))).label == Labels(
        0, 99, whole=True, different=None
    )
