"""Answers: what is predicted for rows, as columns: the plain predictions, or the keys that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import numpy.typing as npt

    from smxgb.rows import FloatArray, Rows
    from smxgb.serving.model import Ensemble

    type Columns = Mapping[str, npt.NDArray[Any] | None]
    """The columns of an answer, shape (rows,) or (rows, values) each; None for null in every row."""

SCORE = "score"
"""The column of the plain predictions."""

LARGE = 1 << 14
"""Rows that are predicted by several threads if there are so many for each: fewer don't pay."""

CLASSES = {"predicted_label", "labels", "raw_score", "raw_scores"}
NAMED = {"predicted_label", "labels"}
"""The keys whose values are classes."""

PROBABILITIES = {"probability", "probabilities"}
ALLOWED: Mapping[str, set[str]] = {
    "binary:logistic": CLASSES | PROBABILITIES,
    "multi:softprob": CLASSES | PROBABILITIES,
    "binary:logitraw": CLASSES,
    "binary:hinge": CLASSES,
    "multi:softmax": CLASSES,
}
"""The keys that an objective can fill beside our own; regression has predicted_score only."""


def answers(
    models: Ensemble,
    rows: Iterator[Rows],
    keys: Sequence[str],
    pool: Executor | None = None,
    *,
    named: bool = False,
) -> Iterator[Columns]:
    """Yield the columns of the answer for each of some arrays of rows.

    `keys` are those that were asked for, none for the plain predictions. `pool` predicts many rows at once.
    Classes are `named` by the labels of the training, if these were words, else by their codes.
    """
    words = np.array(models.signature.classes if named else (), dtype=object)
    for part in rows:
        if keys:
            columns = _selected(models, part, keys)
            yield {
                key: words[column] if len(words) and column is not None and key in NAMED else column
                for key, column in columns.items()
            }
        else:
            yield {SCORE: _spread(models.predict, part, pool)}


def _spread(predict: Callable[[Rows], FloatArray], rows: Rows, pool: Executor | None) -> FloatArray:
    count = rows.shape[0]
    if pool is None or count < 2 * LARGE:
        return predict(rows)
    slices = [rows[start : start + LARGE] for start in range(0, count, LARGE)]
    return np.concatenate(list(pool.map(predict, slices)))


def _selected(models: Ensemble, rows: Rows, keys: Sequence[str]) -> Columns:
    objective = models.first.objective
    scores = models.predict(rows)
    allowed = ALLOWED.get(objective, {"predicted_score"})
    columns: dict[str, npt.NDArray[Any] | None] = {}
    for key in keys:
        if key == "contributions":
            columns[key] = models.first.contributions(rows).reshape(rows.shape[0], -1)
        elif key == "leaf":
            columns[key] = models.first.leaves(rows).reshape(rows.shape[0], -1)
        elif key == "predicted_score" and key in allowed:
            columns[key] = scores
        else:
            is_known = key in allowed
            columns[key] = _of_classes(key, objective, scores, models.first.classes) if is_known else None
    return columns


def _of_classes(key: str, objective: str, scores: FloatArray, classes: int) -> npt.NDArray[Any]:
    """Return a column of a classification, as AWS's image defines it."""
    of_each = _of_each_class(objective, scores)
    match key:
        case "predicted_label":
            return _predicted(objective, scores)
        case "labels":
            return np.tile(np.arange(classes or 2), (len(scores), 1))
        case "probability":
            return of_each.max(axis=1)
        case "raw_score" if objective == "multi:softprob":
            return of_each.max(axis=1)
        case "raw_score":
            return scores
    return of_each


def _of_each_class(objective: str, scores: FloatArray) -> FloatArray:
    if objective == "binary:logistic":
        return np.column_stack([1 - scores, scores])
    return scores if scores.ndim > 1 else scores.reshape(-1, 1)


def _predicted(objective: str, scores: FloatArray) -> npt.NDArray[np.int64]:
    match objective:
        case "multi:softprob":
            return scores.argmax(axis=1)
        case "binary:logistic":
            return (scores > 0.5).astype(np.int64)  # noqa: PLR2004 - the middle of probabilities
        case "binary:logitraw":
            return (scores > 0).astype(np.int64)
    return scores.astype(np.int64)
