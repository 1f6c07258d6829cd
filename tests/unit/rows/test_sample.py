from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from tests.threads import by_all

from smxgb.rows import Batch, Group, Schema, Solo, Sparse, Stored, Summary, sampled
from smxgb.rows.batch import SPARSE, Dense
from smxgb.rows.summary import summarise
from smxgb.training.matrix import MatrixOptions, build_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.rows.roles import RoleArray, RoleName

ALONE = Solo("algo-1")
OPTIONS = MatrixOptions("quantile", threads=2)


def table(values: np.ndarray) -> pa.Table:
    names = [f"f{number}" for number in range(values.shape[1])]
    return pa.table([pa.array(column, pa.float32(), from_pandas=True) for column in values.T], names)


def stored(features: pa.Table, size: int = 1000, weight: np.ndarray | None = None) -> Stored:
    """Return rows that are read in batches of `size`."""

    def batches() -> Iterator[Batch]:
        for start in range(0, features.num_rows, size):
            part = features.slice(start, size)
            roles: dict[RoleName, RoleArray] = {"label": np.zeros(part.num_rows, np.float32)}
            if weight is not None:
                roles["weight"] = weight[start : start + size]
            yield Dense(part.combine_chunks(), roles)

    summary = Summary()
    for batch in batches():
        summary = summary.merge(summarise(batch))
    return Stored(summary, batches)


def sample_of(kept: Stored, features: pa.Table, wanted: int = 1000) -> Stored | None:
    return sampled(
        kept, Schema(tuple(features.column_names), invented=True), [{"train": kept.summary}], wanted, ALONE
    )


def matrix(kept: Stored, features: pa.Table, wanted: int) -> xgb.DMatrix:
    """Return the matrix of all rows with cuts from a sample of so many, 0 for all."""
    schema = Schema(tuple(features.column_names), invented=True)
    sample = sample_of(kept, features, wanted)
    assert (sample is None) == (wanted == 0)
    reference = build_matrix(sample, schema, OPTIONS, Path("none")) if sample else None
    return build_matrix(kept, schema, OPTIONS, Path("none"), reference)


def cuts(of: xgb.DMatrix) -> list[np.ndarray]:
    """Return the cuts of each feature, ascending."""
    ends, values = of.get_quantile_cut()
    return np.split(np.asarray(values), np.asarray(ends)[1:-1].astype(int))


def normal(rows: int, columns: int = 3) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(rows, columns)).astype(np.float32)


def test_the_cuts_of_a_sample_part_the_rows_as_those_of_all_rows_do() -> None:
    values = np.exp(2 * normal(60_000))
    features = table(values)
    for column, own in zip(values.T, cuts(matrix(stored(features), features, 10_000)), strict=True):
        shares = np.diff(np.searchsorted(np.sort(column), own[:-1]), prepend=0) / len(column)
        # 256 bins of 1 / 256 of the rows each.
        assert len(own) > 200
        assert shares.max() < 2.5 / 256


@pytest.mark.parametrize("size", [77, 60_000])
def test_the_sample_does_not_depend_on_the_batches(size: int) -> None:
    values = normal(60_000)
    values[:, 1] = np.where(values[:, 0] > 0, values[:, 1], np.nan)
    features = table(values)
    expected, found = sample_of(stored(features), features), sample_of(stored(features, size), features)
    assert expected is not None
    assert found is not None
    (one,), (other,) = expected.batches(), found.batches()
    assert one.features.equals(other.features)


def test_workers_choose_together_what_one_worker_chooses() -> None:
    values = normal(40_000)
    values[::2, 1] = np.nan
    features = table(values)
    schema = Schema(("f0", "f1", "f2"), invented=True)
    parts = [features.slice(0, 31_000), features.slice(31_000)]
    channels = [stored(part) for part in parts]

    def work(group: Group) -> set[float]:
        summaries = [{"train": kept.summary} for kept in channels]
        sample = sampled(channels[group.rank], schema, summaries, 2000, group)
        assert sample is not None
        return {
            value for batch in sample.batches() for value in batch.features.column(1).drop_null().to_pylist()
        }

    one, other = (found for found in by_all(work, ["algo-1", "algo-2"]) if isinstance(found, set))
    alone = sample_of(stored(features), features, 2000)
    assert alone is not None
    (batch,) = alone.batches()
    expected = set(batch.features.column(1).drop_null().to_pylist())
    # Each worker has the lowest and the highest value of its own rows.
    assert expected - one - other == set()
    assert len((one | other) - expected) <= 2


def test_each_column_has_as_many_values_as_are_asked_for_however_often_it_is_missing() -> None:
    values = normal(100_000)
    values[np.arange(100_000) % 3 > 0, 1] = np.nan
    features = table(values)
    sample = sample_of(stored(features), features, 5000)
    assert sample is not None
    (batch,) = sample.batches()
    for column in batch.features.columns:
        assert len(column) - column.null_count == pytest.approx(5000, rel=0.05)


def test_rare_values_of_a_column_with_few_different_ones_keep_their_cuts() -> None:
    values = normal(50_000, 2)
    values[:, 0] = 0
    values[[7, 49_990], 0] = 1, 5
    features = table(values)
    rare = cuts(matrix(stored(features), features, 1000))[0]
    assert rare.tolist() == cuts(matrix(stored(features), features, 0))[0].tolist()


def test_the_whole_range_of_a_column_is_seen() -> None:
    values = normal(50_000, 2)
    values[:, 0] = np.abs(values[:, 0])
    values[123, 0] = 1e6
    features = table(values)
    assert cuts(matrix(stored(features), features, 1000))[0][-1] > 1e6


def test_weights_count_in_the_cuts_of_a_sample_as_in_those_of_all_rows() -> None:
    values = normal(60_000, 2)
    # The few rows above 1 weigh more than all others.
    weight = np.where(values[:, 0] > 1, 20, 1).astype(np.float32)
    features = table(values)
    full, found = (
        cuts(matrix(stored(features, weight=weight), features, wanted))[0] for wanted in (0, 10_000)
    )
    assert np.mean(full > 1) > 0.5
    assert np.mean(found > 1) == pytest.approx(np.mean(full > 1), abs=0.03)


def test_every_category_is_in_the_sample() -> None:
    words = np.array(["a"] * 30_000, object)
    words[[5, 17, 29_999]] = "b", "c", "d"
    schema = Schema(("f0", "f1"), invented=True, categories={"f1": ("a", "b", "c", "d")})
    codes = pa.DictionaryArray.from_arrays(
        pa.array(np.searchsorted(["a", "b", "c", "d"], words.astype(str)), pa.int32()), list("abcd")
    )
    features = pa.table([pa.array(normal(30_000, 1)[:, 0]), codes], ["f0", "f1"])
    kept = stored(features)
    sample = sampled(kept, schema, [{"train": kept.summary}], 1000, ALONE)
    assert sample is not None
    reference = build_matrix(sample, schema, OPTIONS, Path("none"))
    whole = build_matrix(kept, schema, OPTIONS, Path("none"), reference)
    assert cuts(whole)[1].tolist() == cuts(build_matrix(kept, schema, OPTIONS, Path("none")))[1].tolist()


def test_few_rows_sparse_rows_and_a_column_that_is_nearly_always_missing_are_not_sampled() -> None:
    values = normal(20_000)
    few = table(values[:3999])
    assert sample_of(stored(few), few) is None
    values[np.arange(20_000) % 20 > 0, 2] = np.nan
    rare = table(values)
    assert sample_of(stored(rare), rare) is None
    lists = pa.table(
        [pa.array([[0]] * 9000, SPARSE.field(0).type), pa.array([[1.0]] * 9000, SPARSE.field(1).type)], SPARSE
    )
    batch = Sparse(lists, {"label": np.zeros(9000, np.float32)})
    sparse = Stored(summarise(batch), lambda: iter([batch]))
    assert sample_of(sparse, few) is None


def test_a_worker_without_rows_gives_an_empty_part_of_the_sample() -> None:
    features = table(normal(8000))
    channels = [stored(features), Stored(Summary(), lambda: iter([Dense(features.slice(0, 0), {})]))]

    def work(group: Group) -> int:
        summaries = [{"train": kept.summary} for kept in channels]
        sample = sampled(
            channels[group.rank], Schema(("f0", "f1", "f2"), invented=True), summaries, 1000, group
        )
        assert sample is not None
        (batch,) = sample.batches()
        return batch.rows

    rows, none = by_all(work, ["algo-1", "algo-2"])
    assert rows == pytest.approx(1000, rel=0.1)
    assert none == 0


@pytest.mark.parametrize("shape", ["dense", "skewed", "half missing", "few different"])
def test_a_model_of_sampled_cuts_is_as_good_as_one_of_full_cuts(shape: str) -> None:
    values = normal(70_000, 4)
    label = (values[:, 0] + np.sin(2 * values[:, 1]) + normal(70_000, 6)[:, 5] > 0).astype(np.float32)
    if shape == "skewed":
        values = np.exp(3 * values)
    elif shape == "half missing":
        values[np.random.default_rng(1).random(values.shape) < 0.5] = np.nan
    elif shape == "few different":
        values = np.round(values)
    features, held_out = table(values[:50_000]), xgb.DMatrix(table(values[50_000:]))
    kept = stored(features)
    areas = []
    for wanted in (0, 8000):
        train = matrix(kept, features, wanted)
        train.set_label(label[:50_000])
        for seed in range(3):
            parameters = {"objective": "binary:logistic", "subsample": 0.8, "seed": seed, "nthread": 2}
            areas.append(roc_auc_score(label[50_000:], xgb.train(parameters, train, 10).predict(held_out)))
    full, found = areas[:3], areas[3:]
    assert np.mean(found) == pytest.approx(np.mean(full), abs=max(2 * np.ptp(full), 1e-3))
