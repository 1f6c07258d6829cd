"""Models of sampled quantile cuts beside those of full ones: held-out loss, and the matrix's processor time.

For each shape of table and each seed of it: the loss on held-out rows with cuts from all rows and from a
sample, each the mean over three seeds of the training. A difference is to be judged by the spread of those.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xgboost as xgb

from smxgb.rows import Schema, Solo, Stored, Summary, sampled
from smxgb.rows.batch import ROWS, Dense
from smxgb.training.matrix import MatrixOptions, build_matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smxgb.rows import FloatArray

COLUMNS = 12


def dense(random: np.random.Generator, rows: int) -> FloatArray:
    """Return normal features."""
    return random.normal(size=(rows, COLUMNS)).astype(np.float32)


def skewed(random: np.random.Generator, rows: int) -> FloatArray:
    """Return features with a tail of values that are thousands of times the median."""
    return np.exp(3 * dense(random, rows))


def mostly_missing(random: np.random.Generator, rows: int) -> FloatArray:
    """Return features that 8 to 30 percent of the rows have."""
    values = dense(random, rows)
    values[random.random(values.shape) > np.linspace(0.08, 0.3, COLUMNS)] = np.nan
    return values


def few_distinct(random: np.random.Generator, rows: int) -> FloatArray:
    """Return counts, most of them 0, up to some hundreds."""
    return random.negative_binomial(0.3, 0.02, size=(rows, COLUMNS)).astype(np.float32)


SHAPES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    shape.__name__: shape for shape in (dense, skewed, mostly_missing, few_distinct)
}


def labels(random: np.random.Generator, values: FloatArray) -> FloatArray:
    """Return labels that depend on the ranks of some features, and on whether one is missing."""
    score = np.zeros(len(values))
    for number in range(0, COLUMNS, 3):
        column = np.nan_to_num(values[:, number], nan=-1)
        place = np.searchsorted(np.sort(column[:20_000]), column) / 20_000
        score += np.sin((number + 3) * place)
    return (score + random.logistic(size=len(values)) / 2 > np.mean(score)).astype(np.float32)


def stored(values: FloatArray, label: FloatArray) -> tuple[Stored, Schema]:
    """Return rows as a channel's."""
    schema = Schema.unnamed(values.shape[1])
    features = pa.table(
        [pa.array(column, from_pandas=True) for column in values.T.copy()], list(schema.names)
    )

    def batches() -> Iterator[Dense]:
        for start in range(0, len(values), ROWS):
            part = features.slice(start, ROWS).combine_chunks()
            yield Dense(part, {"label": label[start : start + ROWS]})

    return Stored(Summary(len(values), columns=values.shape[1]), batches), schema


def matrix_of(kept: Stored, schema: Schema, wanted: int, threads: int) -> tuple[xgb.DMatrix, float]:
    """Return the training matrix with cuts of a sample, and the processor time that it took."""
    start = time.process_time()
    options, cache = MatrixOptions("quantile", threads), Path("unused")
    sample = sampled(kept, schema, [{"train": kept.summary}], wanted, Solo("here"))
    reference = build_matrix(sample, schema, options, cache) if sample else None
    return build_matrix(kept, schema, options, cache, reference), time.process_time() - start


def loss(matrix: xgb.DMatrix, held_out: xgb.DMatrix, rounds: int, seed: int, threads: int) -> float:
    """Return the logarithmic loss on the held-out rows."""
    parameters = {"objective": "binary:logistic", "max_depth": 6, "subsample": 0.8}
    booster = xgb.train({**parameters, "seed": seed, "nthread": threads}, matrix, rounds)
    return float(booster.eval(held_out).rpartition(":")[2])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--wanted", type=int, default=131_072)
    options = parser.parse_args()
    print(f"{options.rows:,} x {COLUMNS}, sample of {options.wanted:,}, {options.rounds} rounds")
    print(f"{'shape':15} {'full logloss':>12} {'sampled - full':>15} {'most':>10} {'seeds':>9} {'cpu':>10}")
    for name, shape in SHAPES.items():
        differences, losses, ratios = [], [], []
        for seed in range(options.seeds):
            random = np.random.default_rng(seed)
            values = shape(random, options.rows + 100_000)
            label = labels(random, values)
            kept, schema = stored(values[:-100_000], label[:-100_000])
            held_out = xgb.DMatrix(
                values[-100_000:], label[-100_000:], feature_names=list(schema.names), nthread=options.threads
            )
            full, full_time = matrix_of(kept, schema, 0, options.threads)
            ours, our_time = matrix_of(kept, schema, options.wanted, options.threads)
            ratios.append(our_time / full_time)
            of_seeds = [loss(full, held_out, options.rounds, one, options.threads) for one in range(3)]
            of_sample = [loss(ours, held_out, options.rounds, one, options.threads) for one in range(3)]
            differences.append(np.mean(of_sample) - np.mean(of_seeds))
            losses.append(of_seeds)
        spread = float(np.mean([np.ptp(of_seeds) for of_seeds in losses]))
        print(
            f"{name:15} {np.mean(losses):12.5f} {np.mean(differences):+15.6f}"
            f" {max(differences, key=abs):+10.6f} {spread:9.6f} {np.median(ratios):10.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
