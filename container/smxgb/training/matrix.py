"""Matrices: batches as the XGBoost matrix that the training method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xgboost as xgb
from scipy.sparse import csr_matrix, vstack

from smxgb.rows import ROLES, Sparse
from smxgb.training import gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from smxgb.rows import Batch, FloatArray, Schema, Stored
    from smxgb.training.plan import MatrixKind


def build_matrix(
    stored: Stored,
    schema: Schema,
    kind: MatrixKind,
    *,
    threads: int,
    max_bin: int | None,
    cache: Path,
    on_gpu: bool = False,
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
        on_gpu: Whether a binned matrix is made on the GPU.
        reference: The training matrix, when this one is for evaluation: its quantile cuts are taken over.
    """
    matrix: xgb.DMatrix
    categorical = bool(schema.categories)
    if kind == "whole":
        matrix = _whole(stored, schema, threads)
    elif kind == "iterated":
        batches = Batches(stored, schema, cache_prefix=str(cache))
        matrix = xgb.DMatrix(batches, nthread=threads, enable_categorical=categorical)
    else:
        matrix = xgb.QuantileDMatrix(
            Batches(stored, schema, on_gpu=on_gpu),
            nthread=threads,
            max_bin=max_bin,
            ref=reference,
            enable_categorical=categorical,
        )
        if on_gpu:
            gpu.forget_batches()
    if stored.groups is not None:
        matrix.set_group(stored.groups.sizes)
        if stored.groups.weights is not None:
            matrix.set_weight(stored.groups.weights)
    return matrix


def internal_names(schema: Schema) -> list[str]:
    """Return the names that the features have in every matrix."""
    return [f"f{index}" for index in range(len(schema.names))]


def _row_values(batch: Batch) -> dict[str, FloatArray]:
    """Return what XGBoost takes with a batch. Groups, and their weights, it would cut at the batch's end."""
    values = {}
    for name, array in batch.roles.items():
        called = ROLES[name].xgboost
        if called and not (name == "weight" and "group" in batch.roles):
            values[called] = array
    return values


class Batches(xgb.DataIter):
    """Hands the batches to XGBoost, once for each of its passes."""

    def __init__(
        self, stored: Stored, schema: Schema, *, cache_prefix: str | None = None, on_gpu: bool = False
    ) -> None:
        super().__init__(cache_prefix=cache_prefix)
        self._on_gpu = on_gpu
        self._stored = stored
        self._names = internal_names(schema)
        self._pass: Iterator[Batch] = iter(())

    def reset(self) -> None:
        """Begin a pass."""
        self._pass = self._stored.batches()

    def next(self, input_data: Callable[..., None]) -> bool:
        """Hand over the next batch; return False if there is none."""
        batch = next(self._pass, None)
        if batch is None:
            return False
        described = {}
        if self._on_gpu and not isinstance(batch, Sparse) and gpu.holds(batch.features):
            # A table says its types itself.
            described = {"feature_types": ["float"] * len(self._names)}
            data = gpu.to_gpu(batch.features)
        else:
            data = _features(batch, self._names)
        input_data(data=data, feature_names=self._names, **described, **_row_values(batch))
        return True


def _features(batch: Batch, names: list[str]) -> pa.Table | csr_matrix:
    """Return the features in the form that XGBoost takes; of CSR, only what is stored is a value."""
    if isinstance(batch, Sparse):
        return csr_matrix((batch.values, batch.indices, batch.offsets), (batch.rows, len(names)))
    return batch.features.rename_columns(names)


def _whole(stored: Stored, schema: Schema, threads: int) -> xgb.DMatrix:
    names = internal_names(schema)
    batches = list(stored.batches())
    features = [_features(batch, names) for batch in batches]
    sparse = isinstance(batches[0], Sparse)
    whole = vstack(features, format="csr") if sparse else pa.concat_tables(features)
    parts = [_row_values(batch) for batch in batches]
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return xgb.DMatrix(whole, nthread=threads, feature_names=names, **values)
