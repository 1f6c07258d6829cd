from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xgboost as xgb
from scipy.sparse import csr_matrix

from smxgb.rows.batch import SPARSE, Dense, Sparse
from smxgb.rows.summary import Summary, count_bins, summarise
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


@pytest.mark.parametrize("max_bin", [16, 256])
def test_bins_are_counted_as_xgboost_makes_them(max_bin: int) -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(5_000, 3)).astype(np.float32)
    x[:, 1] = generator.integers(1, 8, len(x))
    x[generator.random(x.shape) < 0.3] = np.nan
    codes = generator.integers(0, 4, len(x)).astype(np.int32)
    words = pa.DictionaryArray.from_arrays(codes, ["a", "b", "c", "d"])
    table = pa.table([*x.T, words], ["a", "b", "c", "d"])
    matrix = xgb.QuantileDMatrix(table, max_bin=max_bin, enable_categorical=True)
    assert count_bins(Dense(table, {}), max_bin) == pytest.approx(len(matrix.get_quantile_cut()[1]), abs=5)

    present = csr_matrix(np.nan_to_num(x))
    rows = [np.split(part, present.indptr[1:-1]) for part in (present.indices, present.data)]
    sparse = Sparse(
        pa.table([pa.array(part, field.type) for part, field in zip(rows, SPARSE, strict=True)], SPARSE), {}
    )
    matrix = xgb.QuantileDMatrix(present, max_bin=max_bin)
    assert count_bins(sparse, max_bin) == pytest.approx(len(matrix.get_quantile_cut()[1]), abs=5)
