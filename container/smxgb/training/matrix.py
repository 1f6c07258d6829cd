"""Matrices: batches as the XGBoost matrix that the training method needs."""

from __future__ import annotations

from dataclasses import dataclass
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
    from smxgb.training.memory_needs import MatrixKind


@dataclass(frozen=True)
class MatrixOptions:
    """How matrices are built.

    `threads` are those of XGBoost. `max_bin` is None for XGBoost's default; training must use the same.
    `on_gpu` says that binned matrices are built on the GPU.
    """

    kind: MatrixKind
    threads: int
    max_bin: int | None = None
    on_gpu: bool = False


def build_matrix(
    stored: Stored,
    schema: Schema,
    options: MatrixOptions,
    cache: Path,
    reference: xgb.DMatrix | None = None,
) -> xgb.DMatrix:
    """Return all rows as a matrix whose features are called f0, f1, ...

    XGBoost refuses some characters in the names of a matrix, so the model gets the real names when it is
    finished.

    Args:
        stored: The rows; read several times.
        schema: The features of the rows.
        options: How the matrix is built.
        cache: The path that the names of XGBoost's cache files begin with, for a matrix that has some.
        reference: The training matrix, whose quantile cuts a matrix for evaluation takes over.
    """
    matrix: xgb.DMatrix
    categorical = bool(schema.categories)
    if options.kind == "whole":
        matrix = _whole(stored, schema, options.threads)
    elif options.kind == "iterated":
        batches = Batches(stored, schema, cache_prefix=str(cache))
        matrix = xgb.DMatrix(batches, nthread=options.threads, enable_categorical=categorical)
    elif options.kind == "external":
        matrix = xgb.ExtMemQuantileDMatrix(
            Batches(stored, schema, cache_prefix=str(cache)),
            nthread=options.threads,
            max_bin=options.max_bin,
            ref=reference,
            enable_categorical=categorical,
        )
    else:
        matrix = xgb.QuantileDMatrix(
            Batches(stored, schema, on_gpu=options.on_gpu),
            nthread=options.threads,
            max_bin=options.max_bin,
            ref=reference,
            enable_categorical=categorical,
        )
        if options.on_gpu:
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
    """Return what XGBoost takes with a batch: no groups or their weights, which it cuts at a batch's end."""
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
            # An array has no types of its own, as a table has.
            described = {"feature_types": ["float"] * len(self._names)}
            data = gpu.to_gpu(batch.features)
        else:
            data = _features(batch, self._names)
        input_data(data=data, feature_names=self._names, **described, **_row_values(batch))
        return True


def _features(batch: Batch, names: list[str]) -> pa.Table | csr_matrix:
    """Return the features in the form that XGBoost takes; what CSR does not store is missing."""
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
