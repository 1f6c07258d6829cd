"""The examination: what the settings mean for the rows that were found, and where they do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes
from smxgb.hyperparameters import resolve_constraints
from smxgb.labels import check_all_rows, check_labels
from smxgb.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.batch import Schema
    from smxgb.errors import Origin
    from smxgb.hyperparameters import Parsed
    from smxgb.plan import Plan
    from smxgb.store import Labels, Shape, Summary


@dataclass(frozen=True)
class Examined:
    """What the settings mean for the rows.

    `classes` is their number for a multi-class objective, None for any other; `counted` says that the labels
    told it. `constraints` are those on features, as XGBoost's parameters.
    """

    classes: int | None
    counted: bool
    constraints: Mapping[str, object]
    plan: Plan

    def describe(self) -> list[str]:
        """Return the lines of the log that say what was found."""
        classes = f"Classes: {self.classes}, counted from the labels, the largest of which is one less."
        return [*([classes] if self.counted else []), self.plan.describe()]


def examine(
    parameters: Parsed,
    schema: Schema,
    labels: Mapping[str, Labels],
    shapes: Mapping[str, Shape],
    *,
    rows: int,
    reading: int,
    available: int,
    gpu_available: int | None = None,
    whole: Mapping[str, Summary] | None = None,
) -> Examined:
    """Return what the settings mean for rows with the features of `schema`.

    Args:
        parameters: The settings.
        schema: The features.
        labels: The labels of each channel that has rows.
        shapes: The size of each channel's matrix.
        rows: The rows to train on.
        reading: The bytes that reading them holds.
        available: The bytes of memory that matrices and training may take.
        gpu_available: The same on the GPU, None for training on the processors.
        whole: All rows of each channel, None if only some were read.

    Raises:
        UserError: With everything that does not fit.
    """
    mistakes = Mistakes()
    classes = parameters.settings.num_class
    with mistakes.collect():
        constraints = resolve_constraints(parameters.settings, schema.names)
    with mistakes.collect():
        classes = check_labels(parameters, labels, rows, schema.layout)
        if whole is not None:
            check_all_rows(parameters, whole, classes)
    # The labels are those of all hosts, the memory is this one's.
    origin: Origin = "everywhere" if any(mistakes) else "here"
    with mistakes.collect():
        plan = make_plan(
            parameters, shapes, available, classes=classes, reading=reading, gpu_available=gpu_available
        )
        plan.check()
    mistakes.raise_any(origin)
    counted = classes is not None and parameters.settings.num_class is None
    return Examined(classes, counted, constraints, plan)
