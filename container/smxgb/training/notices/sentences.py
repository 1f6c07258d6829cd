"""The sentences: what is remarkable in what was observed, and what to do about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from smxgb.settings import kind_of
from smxgb.training.notices.columns import LEAST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.rows import Schema, Summary
    from smxgb.settings import Hyperparameters, Labels, Metric
    from smxgb.training.boosting import Trained
    from smxgb.training.notices.observer import LabelSums, Observed

EXACT = 1 << 24
"""The highest whole number up to which float32 has all."""

FEW = 0.05
"""Fewer of the rows than this share are few positives."""

MOSTLY = 0.5
"""So many more of validation's rows than of train's have no category that train knows: most of them."""

BEYOND_CHANCE = 5.0
"""Standard deviations that chance does not reach."""

PATIENCE = 10
"""Rounds that early stopping is taken to wait, and the least that it must save; a job of fewer is a trial."""

NAMED = 5
"""At most 5 columns or labels are named in a notice."""

type Channels = Mapping[str, Summary]


def about_rows(
    settings: Hyperparameters, schema: Schema, channels: Channels, observed: Mapping[str, Observed]
) -> Iterator[str]:
    """Yield the notices about the rows of a job.

    Args:
        settings: The job's settings.
        schema: The features.
        channels: What was seen of all rows of each channel when they were read.
        observed: What was seen of them when the matrices were built.
    """
    train = observed["train"]
    yield from _about_labels(settings, schema, channels["train"], train)
    yield from _about_columns(schema, train)
    yield from _about_categories(schema, observed)
    if "validation" in channels:
        yield from _about_shared_rows(train, observed["validation"])
        yield from _about_validation_labels(settings, channels, observed["validation"])


def about_training(settings: Hyperparameters, monitored: Metric, trained: Trained) -> Iterator[str]:
    """Yield the notices about the rounds of a finished training, as they show on the validation channel."""
    values = trained.history.get("validation", {}).get(monitored.name, ())
    if len(values) < PATIENCE or all(map(math.isnan, values)):
        return
    best = int((np.nanargmax if monitored.maximised else np.nanargmin)(values))
    saved = len(values) - 1 - best - PATIENCE
    shown = f"validation-{monitored.name}"
    if best == settings.num_round - 1:
        yield (
            f"The best round is the last of all {settings.num_round}, so {shown} was still getting better: "
            "raise num_round, or eta, for a better model."
        )
    elif not settings.early_stopping_rounds and saved >= PATIENCE and best < len(values) / 2:
        yield (
            f"{shown} was best in round {best} of {len(values)} (counted from 0), and the model has all "
            f"rounds: set early_stopping_rounds={PATIENCE}, which would have saved {saved} rounds and kept "
            "the model of the best one."
        )


def about_watching_train() -> str:
    """Return the notice about early stopping in a job without a validation channel."""
    return (
        "Early stopping watches the rows that are trained on, on which a model hardly ever gets worse, for "
        "there is no validation channel: add one."
    )


def _about_labels(
    settings: Hyperparameters, schema: Schema, train: Summary, observed: Observed
) -> Iterator[str]:
    sums, label = observed.labels, train.label
    if sums is None or label is None:
        return
    place = dict(schema.layout.roles).get("label") if schema.layout else None
    is_large = label.whole and max(abs(label.lowest), abs(label.highest)) > EXACT
    if is_large and not (schema.layout and place in schema.layout.unrounded):
        yield (
            f"The labels of train are whole numbers above {EXACT:,}, of which float32 (all that XGBoost "
            "reads) loses the last digits: subtract a start from times, or name another column in "
            "label_column."
        )
    if step := _step(label, sums):
        yield (
            f"The labels of train are {label.lowest:.0f} to {label.highest:.0f}, "
            + ("each once" if step == 1 else f"each {step:.0f}th once")
            + ", as a number of the row would be: if that is not what is to be learned, name the label in "
            "label_column and the column of numbers in drop_columns."
        )
    share = sums.highest / sums.rows
    is_binary = kind_of(settings.objective) == "binary" and label.different == (0.0, 1.0)
    if is_binary and share < FEW and settings.scale_pos_weight is None and "weight" not in train.roles:
        weight = (sums.rows - sums.highest) / sums.highest
        yield (
            f"{sums.highest:,} of the {sums.rows:,} rows of train have the label 1, and all rows count "
            f"alike: set scale_pos_weight={weight:.4g} to give both labels the same weight, unless "
            "probabilities are needed as they are."
        )


def _step(label: Labels, sums: LabelSums) -> float | None:
    """Return the step of labels that are whole numbers in even steps, each once, in any order; else None."""
    if sums.rows < LEAST or not label.whole:
        return None
    step = (label.highest - label.lowest) / (sums.rows - 1)
    middle = (label.lowest + label.highest) / 2
    # The sum of the squares of their distances from the middle.
    spread = sums.squares - 2 * middle * sums.labels + sums.rows * middle**2
    expected = step**2 * sums.rows * (sums.rows**2 - 1) / 12
    are_even = step >= 1 and step == int(step) and math.isclose(sums.labels, middle * sums.rows, rel_tol=1e-9)
    return step if are_even and math.isclose(spread, expected, rel_tol=1e-7) else None


def _about_columns(schema: Schema, observed: Observed) -> Iterator[str]:
    names, columns = schema.names, sorted(observed.columns.items())
    layout = schema.layout
    unrounded = {
        index
        for index, place in enumerate(layout.features if layout else ())
        if layout and place in layout.unrounded
    }
    large = [
        names[position]
        for position, column in columns
        if (column.largest or 0) > EXACT and position not in unrounded
    ]
    if large:
        yield (
            f"{_columns(large)} whole numbers above {EXACT:,}, of which float32 (all that XGBoost reads) "
            "loses the last digits: take numbers that only name something out (drop_columns) or make them "
            "categories (categorical_columns), and subtract a start from times."
        )
    relations = [
        (names[position], column.relation)
        for position, column in columns
        if column.relation and column.relation.determines
    ]
    of_categories = [
        names[position] for position, found in sorted(observed.categories.items()) if found.determines
    ]
    exact = [name for name, relation in relations if relation.is_exact] + of_categories
    nearly = [name for name, relation in relations if not relation.is_exact]
    for found, how in ((exact, "the label exactly"), (nearly, "nearly all of the label")):
        if found:
            yield (
                f"{_columns(found, 'tell', 'tells')} {how} (correlation or auc of 1): take out with "
                "drop_columns what is not known yet when the model predicts."
            )


def _about_categories(schema: Schema, observed: Mapping[str, Observed]) -> Iterator[str]:
    unique, constant, unseen = [], [], []
    for position, found in sorted(observed["train"].categories.items()):
        name = schema.names[position]
        count = len(schema.categories.get(name, ()))
        other = observed["validation"].categories.get(position) if "validation" in observed else None
        if found.present >= LEAST and count > found.present / 2:
            unique.append(name)
        elif other and other.missing_share > found.missing_share + MOSTLY:
            unseen.append(name)
        elif count == 1 and not found.missing and found.present >= LEAST:
            constant.append(name)
    if unique:
        yield (
            f"{_columns(unique)} nearly as many categories as rows, so that they tell nothing of other "
            "rows: take them out with drop_columns, or leave numbers out of categorical_columns."
        )
    if constant:
        yield f"{_columns(constant)} the same category in all rows of train: take them out with drop_columns."
    if unseen:
        yield (
            f"{_columns(unseen)} categories in most rows of validation that train does not have, which "
            "count as missing: split the rows so that both have them, and write them alike."
        )


def _about_shared_rows(train: Observed, validation: Observed) -> Iterator[str]:
    common, compared = validation.sketch.rows_in(train.sketch)
    # Rows of few values are alike by chance, within train as between it and validation.
    by_chance = train.sketch.repeated
    if compared and common / compared > by_chance + BEYOND_CHANCE * _deviation(by_chance, compared):
        yield (
            f"{_share(common, compared)} of validation's rows are in train too, label and all, so that "
            "their metrics say little of new rows: split the rows before any is copied, and leave those of "
            "validation out of train."
        )


def _about_validation_labels(
    settings: Hyperparameters, channels: Channels, validation: Observed
) -> Iterator[str]:
    label, known = channels["validation"].label, channels["train"].label
    if label is None or known is None:
        return
    cure = "split the rows at random, or check that both channels have the same label column."
    if kind_of(settings.objective) in {"binary", "multi-class"}:
        new = sorted(set(label.different or ()) - set(known.different or ())) if known.different else []
        if new:
            yield f"Validation has {_listed('label', new)}, which train does not have: {cure}"
    elif validation.labels is not None:
        rows, outside = validation.labels.rows, validation.labels.outside
        by_chance = min(1.0, 2 / (channels["train"].rows + 1))
        if outside / rows > by_chance + BEYOND_CHANCE * _deviation(by_chance, rows):
            yield (
                f"{_share(outside, rows)} of validation's labels are outside those of train "
                f"({known.lowest:g} to {known.highest:g}), which trees can't predict: {cure}"
            )


def _deviation(share: float, rows: int) -> float:
    """Return the standard deviation of a share in so many rows, of at least about one row."""
    share = max(share, 1 / rows)
    return math.sqrt(share * (1 - share) / rows) if rows > 1 else 1.0


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


def _columns(names: Sequence[str], several: str = "have", one: str = "has") -> str:
    shown = ", ".join(map(repr, names[:NAMED]))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"The columns {shown}{more} {several}" if len(names) > 1 else f"The column {shown} {one}"


def _listed(noun: str, labels: Sequence[float]) -> str:
    shown = ", ".join(f"{label:g}" for label in labels[:NAMED])
    more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
    return f"the {noun}{'s' if len(labels) > 1 else ''} {shown}{more}"
