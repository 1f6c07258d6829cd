"""Checks: what the settings mean for the rows that were found, and where they do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes
from smxgb.settings import kind_of, resolve_constraints
from smxgb.training.labels import check_all_labels, check_labels
from smxgb.training.memory_plan import choose_plan, make_plans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from smxgb.rows import Schema, Shape, Stored, Summary
    from smxgb.settings import Labels, Parsed
    from smxgb.training.memory_plan import Memory, Plan


@dataclass(frozen=True)
class Seen:
    """What was seen of a job's rows.

    `schema` is None if the number of features is not known yet. `labels` are those of each channel that
    has rows, `shapes` the sizes of the channels' matrices. `reading` is the bytes that reading takes. `whole`
    has all rows of each channel, None if only some were read. `bins` are the histogram bins of all features,
    None if they are not known.
    """

    schema: Schema | None
    labels: Mapping[str, Labels]
    shapes: Mapping[str, Shape]
    reading: int
    whole: Mapping[str, Summary] | None = None
    bins: int | None = None


@dataclass(frozen=True)
class Checked:
    """What the settings mean for the rows.

    `classes` is their number for a multi-class objective, None for any other; `counted` says that the labels
    told it. `constraints` are those on features, as XGBoost's parameters. `notes` are notices about labels
    that can be trained on, and may still be a mistake.
    """

    classes: int | None
    counted: bool
    constraints: Mapping[str, object]
    plan: Plan
    notes: Sequence[str] = ()

    def describe(self) -> list[str]:
        """Return the lines of the log that say what was found."""
        classes = [f"Classes: {self.classes} (0 to {self.classes - 1})."] if self.classes else []
        return [*(classes if self.counted else []), self.plan.describe()]


def check_rows(
    parameters: Parsed,
    seen: Seen,
    free: Memory,
    fit_everywhere: Callable[[list[bool]], list[bool]] = list,
    given_up: int = 0,
) -> Checked:
    """Return what the settings mean for the rows that were seen, with so much free memory.

    `fit_everywhere` and `given_up` are those of `choose_plan`; without them, this worker is alone.

    Raises:
        UserError: With everything that does not fit.
        PlatformError: If this host's memory is too small.
    """
    mistakes = Mistakes()
    rows = None if seen.whole is None else seen.whole["train"].rows
    classes = parameters.settings.num_class
    constraints: Mapping[str, object] = {}
    notes: list[str] = []
    with mistakes.collect():
        if seen.schema is not None:
            constraints = resolve_constraints(parameters.settings, seen.schema.names)
    with mistakes.collect():
        classes = check_labels(parameters, seen.labels, rows, seen.schema)
        if seen.whole is not None:
            notes = check_all_rows(parameters, seen.whole, classes)
    # The labels are those of all hosts, the memory is this one's.
    mistakes.raise_any("everywhere")
    plans = make_plans(
        parameters,
        seen.shapes,
        free,
        classes=classes,
        reading=seen.reading,
        rows=rows,
        bins=seen.bins,
    )
    plan = choose_plan(plans, fit_everywhere, given_up)
    counted = classes is not None and parameters.settings.num_class is None
    return Checked(classes, counted, constraints, plan, notes)


def check_all_rows(parameters: Parsed, channels: Mapping[str, Summary], classes: int | None) -> list[str]:
    """Check what only all rows of the channels tell; `classes` is the result of `check_labels`.

    Return notices about labels that are no mistake.

    Raises:
        UserError: If the weights of a channel are all 0, or the labels do not fit (`check_all_labels`).
    """
    mistakes = Mistakes()
    for channel, summary in channels.items():
        if summary.rows and summary.weights == 0:
            mistakes.add(
                f"channel {channel}: the weights of all {summary.rows:,} rows are 0: give some row a weight "
                "above 0, or leave out the setting that names the weights."
            )
    labels = {channel: summary.label for channel, summary in channels.items() if summary.label}
    notes: list[str] = []
    with mistakes.collect():
        notes = check_all_labels(parameters, labels, classes)
    mistakes.raise_any()
    return notes


def check_groups(parameters: Parsed, channels: Mapping[str, Stored]) -> None:
    """Raise UserError if a ranking objective has no groups, or another objective groups with weights."""
    objective = parameters.settings.objective
    ranks = kind_of(objective) == "ranking"
    mistakes = Mistakes()
    for name, stored in channels.items():
        if not stored.rows:
            continue
        if ranks and stored.groups is None:
            mistakes.add(
                f"channel {name} has no groups, and objective={objective} ranks the rows of each group: "
                "write qid: behind the labels of libsvm files, or set group_column."
            )
        if not ranks and stored.groups is not None and stored.groups.weights is not None:
            mistakes.add(
                f"channel {name} has groups and weights: XGBoost then reads one weight a group, and "
                f"objective={objective} needs one a row. Leave out the groups or the weights."
            )
    mistakes.raise_any()
