"""The examination: what the settings mean for the rows that were found, and where they do not fit.

XGBoost checks some of it after the matrix is built, in words about other things (a binary label of 2 is
reported as a wrong base_score), and some of it not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes, UserError
from smxgb.settings import (
    BINARY,
    CURVES,
    GAINED,
    OBJECTIVES,
    PROBABILITY,
    WHOLE_GRADE,
    kind_of,
    resolve_constraints,
)
from smxgb.training.plan import make_plan
from smxgb.wording import shown_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.errors import Origin
    from smxgb.rows import Layout, Schema, Shape, Stored, Summary
    from smxgb.settings import Domain, Hyperparameters, Labels, Parsed
    from smxgb.training.plan import Plan

FEW_CLASSES = 100
SPARSEST = 10
"""Labels are no numbers of classes if they make more than so many, and so many times as many as they are."""

LISTED = 10
"""How many labels a text names."""

_RANKED: Mapping[str, Domain] = {"map": BINARY, "pre": BINARY}
_SCORED: Mapping[str, Domain] = dict.fromkeys(CURVES, PROBABILITY)


@dataclass(frozen=True)
class Examined:
    """What the settings mean for the rows.

    `classes` is their number for a multi-class objective, None for any other; `counted` says that the labels
    told it. `constraints` are those on features, as XGBoost's parameters. `notes` are lines for the log about
    labels that can be trained on, and yet may not be what was meant.
    """

    classes: int | None
    counted: bool
    constraints: Mapping[str, object]
    plan: Plan
    notes: Sequence[str] = ()

    def describe(self) -> list[str]:
        """Return the lines of the log that say what was found."""
        classes = f"Classes: {self.classes}, counted from the labels, the largest of which is one less."
        return [*([classes] if self.counted else []), *self.notes, self.plan.describe()]


def examine(
    parameters: Parsed,
    schema: Schema | None,
    labels: Mapping[str, Labels],
    shapes: Mapping[str, Shape],
    *,
    reading: int,
    available: int,
    gpu_available: int | None = None,
    whole: Mapping[str, Summary] | None = None,
) -> Examined:
    """Return what the settings mean for rows with the features of `schema`.

    Args:
        parameters: The settings.
        schema: The features; None if how many there are is not known yet.
        labels: The labels of each channel that has rows.
        shapes: The size of each channel's matrix.
        reading: The bytes that reading them holds.
        available: The bytes of memory that matrices and training may take.
        gpu_available: The same on the GPU, None for training on the processors.
        whole: All rows of each channel, None if only some were read.

    Raises:
        UserError: With everything that does not fit.
    """
    mistakes = Mistakes()
    rows = None if whole is None else whole["train"].rows
    classes = parameters.settings.num_class
    constraints: Mapping[str, object] = {}
    notes: list[str] = []
    with mistakes.collect():
        if schema is not None:
            constraints = resolve_constraints(parameters.settings, schema.names)
    with mistakes.collect():
        classes = check_labels(parameters, labels, rows, schema.layout if schema else None)
        if whole is not None:
            notes = check_all_rows(parameters, whole, classes)
    # The labels are those of all hosts, the memory is this one's.
    origin: Origin = "everywhere" if any(mistakes) else "here"
    with mistakes.collect():
        plan = make_plan(
            parameters, shapes, available, classes=classes, reading=reading, gpu_available=gpu_available
        )
        plan.check()
    mistakes.raise_any(origin)
    counted = classes is not None and parameters.settings.num_class is None
    return Examined(classes, counted, constraints, plan, notes)


def check_labels(
    parameters: Parsed, channels: Mapping[str, Labels], rows: int | None, layout: Layout | None = None
) -> int | None:
    """Return the number of classes of a multi-class objective, None for any other.

    `channels` has the labels of each channel that has rows; training has `rows`, None if these are the labels
    of some rows only. `num_class` is one more than the largest label if the job does not set it, and None as
    long as no label was read. `layout` is that of train's files, if they have columns.

    Raises:
        UserError: If a channel has labels that the objective or a metric does not take.
    """
    _check_domains(parameters, channels, layout)
    if kind_of(parameters.settings.objective) != "multi-class":
        return None
    if not channels:
        return parameters.settings.num_class
    classes = _classes(parameters.settings, channels, rows)
    scores = len(parameters.settings.base_score or ())
    is_known = rows is not None or parameters.settings.num_class is not None
    if scores > 1 and scores != classes and is_known:
        raise UserError(
            f"base_score has {scores} numbers, and there are {classes} classes: give one number, or one for "
            "each class."
        )
    return classes


def _check_domains(parameters: Parsed, channels: Mapping[str, Labels], layout: Layout | None) -> None:
    wrong: dict[tuple[str, str, Domain], list[str]] = {}
    for channel, labels in channels.items():
        for limit in _domains(parameters):
            if not limit[-1].holds(labels):
                wrong.setdefault(limit, []).append(channel)
                break
    mistakes = Mistakes()
    for (owner, cure, domain), (first, *others) in wrong.items():
        so_too = f" (so has channel {' and '.join(others)})" if others else ""
        mistakes.add(
            f"channel {first} has the labels {_shown(channels[first])}{so_too}, but for {owner} a label is "
            f"{domain.rule}: recode the labels{_as_classes(parameters, channels[first])}, or {cure}."
            f"{_which_column(parameters.settings, layout)}"
        )
    mistakes.raise_any()


def _as_classes(parameters: Parsed, labels: Labels) -> str:
    """Return how to write labels that name classes; nothing for those that are no classes."""
    kind = kind_of(parameters.settings.objective)
    if kind == "binary" and len(labels.different or ()) == 2:  # noqa: PLR2004 - one label a class
        return " as 0 and 1"
    return " as 0, 1, 2 and so on" if kind == "multi-class" and labels.different else ""


def check_all_rows(parameters: Parsed, channels: Mapping[str, Summary], classes: int | None) -> list[str]:
    """Hold the rows of all batches to what only they together tell; `classes` is `check_labels`' result.

    Return lines for the log about labels that are no mistake.

    Raises:
        UserError: If a channel's rows weigh nothing, train has no label above 0 where one is needed, or the
            labels are no numbers of classes.
    """
    settings = parameters.settings
    mistakes = Mistakes()
    for channel, summary in channels.items():
        if summary.rows and summary.weights == 0:
            mistakes.add(
                f"channel {channel}: the weights of all {summary.rows:,} rows are 0: give some row a weight "
                "above 0, or leave out the setting that names the weights."
            )
    label = channels["train"].label
    needed = OBJECTIVES[settings.objective].needs_some
    if needed and label and label.highest <= 0:
        mistakes.add(
            f"channel train has no label above 0 (they are {_shown(label)}), and "
            f"objective={settings.objective} needs {needed}."
        )
    notes = []
    if label and label.lowest == label.highest:
        notes.append(f"Every row of train has the label {label.lowest:g}: there is nothing to learn.")
    if classes is not None and not settings.num_class:
        notes += _check_gaps(classes, [kept.label for kept in channels.values() if kept.label], mistakes)
    mistakes.raise_any()
    return notes


def _check_gaps(classes: int, labels: list[Labels], mistakes: Mistakes) -> Iterator[str]:
    """Yield what to say of classes without rows; note a mistake if the labels hardly number classes."""
    lists = [found.different for found in labels if found.different is not None]
    if len(lists) < len(labels):
        return
    known = set[float]().union(*lists)
    unused = [label for label in range(classes) if label not in known]
    if classes > max(FEW_CLASSES, SPARSEST * len(known)):
        mistakes.add(
            f"the {len(known)} different labels ({_listed(sorted(known))}) make {classes:,} classes, one "
            "more than the largest: number the classes 0, 1, 2 and so on, or set num_class."
        )
    elif unused:
        yield f"No row has the label {_listed(unused)}, which are classes of the model all the same."


def _which_column(settings: Hyperparameters, layout: Layout | None) -> str:
    """Return a sentence that names the label's column, if nobody chose it: often it is another one."""
    position = dict(layout.roles).get("label") if layout else None
    if layout is None or position is None or settings.label_column is not None:
        return ""
    return (
        f" The label is {shown_column(position, layout.columns)}, the first one; if that is the wrong "
        "column, set label_column."
    )


def check_groups(parameters: Parsed, channels: Mapping[str, Stored]) -> None:
    """Raise UserError if an objective that ranks finds no groups, or another finds them weighed."""
    objective = parameters.settings.objective
    ranks = kind_of(objective) == "ranking"
    mistakes = Mistakes()
    for name, stored in channels.items():
        if not stored.rows:
            continue
        if ranks and stored.groups is None:
            mistakes.add(
                f"channel {name} has no groups, whose rows objective={objective} ranks: write qid: behind "
                "the labels of libsvm files, or set group_column."
            )
        if not ranks and stored.groups is not None and stored.groups.weights is not None:
            mistakes.add(
                f"channel {name} has groups and weights: XGBoost then reads one weight a group, and "
                f"objective={objective} needs one a row. Leave out the groups or the weights."
            )
    mistakes.raise_any()


def _domains(parameters: Parsed) -> Iterator[tuple[str, str, Domain]]:
    """Yield what limits the labels, what else could be done about it, and the limit."""
    objective = parameters.settings.objective
    graded = WHOLE_GRADE if parameters.settings.ndcg_exp_gain is False else GAINED
    domain = OBJECTIVES[objective].labels
    if domain is GAINED:
        domain = graded
    if domain:
        yield f"objective={objective}", "choose another objective", domain
    kind = kind_of(objective)
    for metric in parameters.metrics:
        domain = graded if metric.base == "ndcg" else _RANKED.get(metric.base)
        if kind == "ranking" and metric.base == "aucpr":
            domain = BINARY
        if kind not in {"ranking", "multi-class"}:
            domain = domain or _SCORED.get(metric.base)
        if metric.own and kind == "binary" and "regression" not in metric.entry.fits:
            domain = BINARY
        if domain:
            yield f"metric {metric.name}", "set eval_metric to others", domain


def _classes(settings: Hyperparameters, channels: Mapping[str, Labels], rows: int | None) -> int:
    highest = {channel: int(labels.highest) for channel, labels in channels.items()}
    classes = settings.num_class or max(2, 1 + max(highest.values()))
    mistakes = Mistakes()
    for channel, label in highest.items():
        if label >= classes:
            mistakes.add(
                f"channel {channel} has the label {label}, but num_class={classes} allows 0 to "
                f"{classes - 1}: set num_class={label + 1}, or leave it out to have the classes counted."
            )
        elif rows is not None and label >= max(rows, 2) and not settings.num_class:
            mistakes.add(
                f"channel {channel} has the label {label}, which makes {classes:,} classes of {rows:,} rows: "
                "number the classes 0, 1, 2 and so on."
            )
    mistakes.raise_any()
    return classes


def _listed(labels: Sequence[float]) -> str:
    more = f" and {len(labels) - LISTED} more" if len(labels) > LISTED else ""
    return ", ".join(f"{label:g}" for label in labels[:LISTED]) + more


def _shown(labels: Labels) -> str:
    if labels.different:
        return ", ".join(f"{label:g}" for label in labels.different)
    return f"from {labels.lowest:g} to {labels.highest:g}"
