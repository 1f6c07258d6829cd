"""Matrices: batches as the XGBoost matrix that the training method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xgboost as xgb
from scipy.sparse import csr_matrix, vstack

from smxgb.batch import Sparse
from smxgb.groups import group_weights, starts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from smxgb.batch import Batch, FloatArray, GroupArray, Schema
    from smxgb.plan import MatrixKind
    from smxgb.store import Stored

    type Values = Mapping[str, FloatArray | GroupArray]


def build_matrix(
    stored: Stored,
    schema: Schema,
    kind: MatrixKind,
    *,
    threads: int,
    max_bin: int | None,
    cache: Path,
    ranking: bool = False,
    reference: xgb.DMatrix | None = None,
) -> xgb.DMatrix:
    """Return all rows as a matrix whose features are called f0, f1, ...

    XGBoost refuses some characters in the names of a matrix, so the real ones are put on the finished model.

    Args:
        stored: The rows; read several times.
        schema: The features of the rows.
        kind: The kind of matrix.
        threads: Threads of XGBoost.
        max_bin: Bins a feature, None for XGBoost's default; the training must use the same.
        cache: The beginning of the names of files that a matrix kind may write.
        ranking: Whether groups are ranked: they then have weights, not rows.
        reference: The training matrix, when this one is for evaluation: its quantile cuts are taken over.
    """
    if kind == "whole":
        return _whole(stored, schema, threads, ranking=ranking)
    if kind == "iterated":
        batches = _Batches(stored, schema, ranking=ranking, cache_prefix=str(cache))
        return xgb.DMatrix(batches, nthread=threads, enable_categorical=bool(schema.categories))
    return xgb.QuantileDMatrix(
        _Batches(stored, schema, ranking=ranking),
        nthread=threads,
        max_bin=max_bin,
        ref=reference,
        enable_categorical=bool(schema.categories),
    )


def internal_names(schema: Schema) -> list[str]:
    """Return the names that the features have in every matrix."""
    return [f"f{index}" for index in range(len(schema.names))]


def _row_values(batch: Batch, *, ranking: bool) -> Values:
    group, weight = batch.group, batch.weight
    if group is not None and weight is not None:
        # XGBoost takes one or the other: weights of groups, or of rows that are in no group.
        group, weight = (group, group_weights(group, weight)) if ranking else (None, weight)
    values = {
        "label": batch.label,
        "weight": weight,
        "qid": group,
        "label_lower_bound": batch.lower,
        "label_upper_bound": batch.upper,
    }
    return {name: value for name, value in values.items() if value is not None}


def _numbered(values: Values) -> Values:
    """Return the values with groups numbered in their order, since XGBoost takes ascending numbers only."""
    if "qid" not in values:
        return values
    group = values["qid"].astype(np.int64, copy=False)
    begins = np.zeros(len(group), np.int64)
    begins[starts(group)] = 1
    return {**values, "qid": np.cumsum(begins)}


class _Batches(xgb.DataIter):
    """Hands the batches to XGBoost, once for each of its passes."""

    def __init__(
        self, stored: Stored, schema: Schema, *, ranking: bool, cache_prefix: str | None = None
    ) -> None:
        super().__init__(cache_prefix=cache_prefix)
        self._stored = stored
        self._ranking = ranking
        self._names = internal_names(schema)
        self._pass: Iterator[Batch] = iter(())

    def reset(self) -> None:
        self._pass = self._stored.batches()

    def next(self, input_data: Callable[..., None]) -> bool:
        batch = next(self._pass, None)
        if batch is None:
            return False
        values = _numbered(_row_values(batch, ranking=self._ranking))
        input_data(data=_features(batch, self._names), feature_names=self._names, **values)
        return True


def _features(batch: Batch, names: list[str]) -> pa.Table | csr_matrix:
    """Return the features in the form that XGBoost takes; of CSR, only what is stored is a value."""
    if isinstance(batch, Sparse):
        return csr_matrix((batch.values, batch.indices, batch.offsets), (batch.rows, len(names)))
    return batch.features.rename_columns(names)


def _whole(stored: Stored, schema: Schema, threads: int, *, ranking: bool) -> xgb.DMatrix:
    names = internal_names(schema)
    batches = list(stored.batches())
    features = [_features(batch, names) for batch in batches]
    sparse = isinstance(batches[0], Sparse)
    whole = vstack(features, format="csr") if sparse else pa.concat_tables(features)
    parts = [_row_values(batch, ranking=ranking) for batch in batches]
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return xgb.DMatrix(whole, nthread=threads, feature_names=names, **_numbered(values))
