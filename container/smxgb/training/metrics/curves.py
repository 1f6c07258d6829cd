"""auc and aucpr over the rows of all workers, from histograms of their scores.

XGBoost averages each worker's own auc and aucpr. Where shards differ that is far off: on shards sorted by
label it is 0.860, and the auc of all rows is 0.897. For a worker with one class it is undefined. Here the
workers add up histograms, and every worker computes the same value from the sums.

Scores are binned twice by the bits of the 32-bit float itself, so that no range needs to be known and no
outlier matters: first by the upper 16 bits, then the fullest bins are refined by as many of the lower bits as
`FINE_BINS` allows. Two scores in one bin count as equal. So the error of auc is at most half the share of
(positive, negative) pairs that share a bin without being equal. Measured: no error where scores repeat, as
those of trees do; with continuous scores below 1e-6 for auc and 1e-5 for aucpr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.rows import Group
    from smxgb.settings import Curve
    from smxgb.training.metrics.problem import Truth

    type Floats = npt.NDArray[np.float64]
    type Scores = npt.NDArray[np.float32]
    type Keys = npt.NDArray[np.uint32]

COARSE_BITS = 16
"""Bits of the first histogram: sign, exponent and 7 bits of the fraction."""

FINE_BINS = 1 << 16
"""Bins of the second histogram: all refined bins of the first one share them."""

MOST_REFINED = 1 << 10
"""At most so many bins of the first histogram are refined by the second one."""


def curve_value(curve: Curve, scores: Scores, truth: Truth, group: Group) -> float:
    """Return auc or aucpr of all workers' rows as XGBoost defines it; nan if only one class has any weight.

    `scores` are predictions, or any numbers in the same order: (rows,), or (rows, classes) for several
    classes. Labels are from 0 to 1, or the class. With several classes the value is the mean over the
    classes, each against the rest: for auc weighted by the classes' rows, for aucpr unweighted.
    """
    weight = truth.weights
    if scores.ndim == 1:
        positive = truth.label.astype(np.float64) * weight
        return _area(curve, *_histogram(scores, positive, weight - positive, group))[0]
    areas, totals = [], []
    for number in range(scores.shape[1]):
        positive = np.where(truth.label == number, weight, 0.0)
        area, total = _area(curve, *_histogram(scores[:, number], positive, weight - positive, group))
        areas.append(area)
        totals.append(total)
    if not sum(totals):
        return float("nan")
    return float(np.average(areas, weights=totals if curve == "auc" else None))


def _histogram(scores: Scores, positive: Floats, negative: Floats, group: Group) -> tuple[Floats, Floats]:
    """Return the positive and negative weight of each bin over all workers, the highest scores first."""
    keys = _ordered_keys(scores)
    upper = keys >> COARSE_BITS
    coarse = group.sum(_counts(upper, positive, negative, 1 << COARSE_BITS))
    crowded = coarse[0] * coarse[1]
    refined = np.argsort(-crowded, kind="stable")[: min(MOST_REFINED, int(np.count_nonzero(crowded)))]
    if not len(refined):
        return coarse[0, ::-1], coarse[1, ::-1]
    bits = min(COARSE_BITS, (FINE_BINS // len(refined)).bit_length() - 1)
    slot = np.full(1 << COARSE_BITS, -1, np.int64)
    slot[refined] = np.arange(len(refined))
    own_slot = slot[upper]
    inside = own_slot >= 0
    lower = (keys[inside] & ((1 << COARSE_BITS) - 1)) >> (COARSE_BITS - bits)
    cells = (own_slot[inside] << bits) + lower
    fine = group.sum(_counts(cells, positive[inside], negative[inside], len(refined) << bits))
    return _merged(coarse[0], fine[0], refined, bits), _merged(coarse[1], fine[1], refined, bits)


def _ordered_keys(scores: Scores) -> Keys:
    """Return unsigned numbers in the order of the scores; equal scores, such as -0 and 0, have equal ones."""
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


def _counts(cells: npt.NDArray[np.integer], positive: Floats, negative: Floats, size: int) -> Floats:
    # Of no rows, bincount makes whole numbers, whatever the weights are.
    return np.stack([np.bincount(cells, weight, size) for weight in (positive, negative)]).astype(np.float64)


def _merged(coarse: Floats, fine: Floats, refined: npt.NDArray[np.int64], bits: int) -> Floats:
    """Return the weights of all bins, the highest first, with finer bins instead of each refined one."""
    ascending = np.argsort(refined)
    parts = fine.reshape(len(refined), 1 << bits)[ascending]
    kept = np.delete(coarse, refined)
    positions = np.repeat(refined[ascending] - np.arange(len(refined)), 1 << bits)
    return np.insert(kept, positions, parts.ravel())[::-1]


def _area(curve: Curve, positive: Floats, negative: Floats) -> tuple[float, float]:
    """Return the area under a curve over bins, the highest scores first, and the weight of all positives."""
    filled = (positive > 0) | (negative > 0)
    hits, misses = np.cumsum(positive[filled]), np.cumsum(negative[filled])
    if not len(hits) or hits[-1] <= 0 or misses[-1] <= 0:
        return float("nan"), float(hits[-1]) if len(hits) else 0.0
    before_hits, before_misses = np.append(0.0, hits[:-1]), np.append(0.0, misses[:-1])
    if curve == "auc":
        area = np.sum((misses - before_misses) * (hits + before_hits)) / (2 * hits[-1] * misses[-1])
    else:
        area = _precision_recall(before_hits, hits, before_misses, misses)
    return float(area), float(hits[-1])


def _precision_recall(before_hits: Floats, hits: Floats, before_misses: Floats, misses: Floats) -> float:
    """Return the area between points that are joined as Davis and Goadrich (ICML 2006) and XGBoost do."""
    total = hits[-1]
    rises = hits > before_hits
    h0, h1, m0, m1 = before_hits[rises], hits[rises], before_misses[rises], misses[rises]
    slope = (m1 - m0) / (h1 - h0)
    start, end = h0 / total, h1 / total
    a, b = 1 + slope, (m0 - slope * h0) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = (end - start - b / a * (np.log(a * end + b) - np.log(a * start + b))) / a
    return float(np.sum(np.where(b == 0, (end - start) / a, bent)))
