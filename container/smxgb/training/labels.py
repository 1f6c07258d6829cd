"""Labels: whether those that were found fit the objective and the metrics, and how many classes they make.

XGBoost checks some of it after the matrix is built, with messages about something else (for a binary label of
2 it reports a wrong base_score), and some of it not at all.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes, UserError
from smxgb.settings import BINARY, CURVES, GAINED, OBJECTIVES, PROBABILITY, WHOLE_GRADE, kind_of
from smxgb.wording import shown_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.rows import Layout, Schema
    from smxgb.settings import Domain, Hyperparameters, Labels, Parsed

MOST_CLASSES = 100
CLASSES_A_LABEL = 10
"""At most 100 classes are counted from the labels, or 10 for each different label if that is more."""

LISTED = 10
"""At most 10 labels are named in a message."""

_RANKED: Mapping[str, Domain] = {"map": BINARY, "pre": BINARY}
_SCORED: Mapping[str, Domain] = dict.fromkeys(CURVES, PROBABILITY)


def check_labels(
    parameters: Parsed, channels: Mapping[str, Labels], rows: int | None, schema: Schema | None = None
) -> int | None:
    """Return the number of classes of a multi-class objective, None for any other.

    If the job sets no `num_class`, it is one more than the largest label; None if no label was read.

    Args:
        parameters: The settings.
        channels: The labels of each channel that has rows.
        rows: The number of rows of train, None if only some rows were read.
        schema: The features, and the classes that labels name, if they are known.

    Raises:
        UserError: If a channel has labels that the objective or a metric does not take.
    """
    _check_domains(parameters, channels, schema.layout if schema else None)
    if kind_of(parameters.settings.objective) != "multi-class":
        return None
    if not channels:
        return parameters.settings.num_class
    classes = _classes(parameters.settings, channels, rows, named=len(schema.classes) if schema else 0)
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
    """Return how labels of classes are to be written; nothing for other labels."""
    kind = kind_of(parameters.settings.objective)
    if kind == "binary" and len(labels.different or ()) == 2:  # noqa: PLR2004 - one label a class
        return " as 0 and 1 (class_labels=auto does so)"
    is_listed = kind == "multi-class" and labels.different
    return " as 0, 1, 2 and so on (class_labels=auto does so)" if is_listed else ""


def check_all_labels(parameters: Parsed, channels: Mapping[str, Labels], classes: int | None) -> list[str]:
    """Check what only the labels of all rows tell; `classes` is the result of `check_labels`.

    Return notices about labels that are no mistake.

    Raises:
        UserError: If train has no label above 0 and the objective needs one, or if the labels do not number
            the classes.
    """
    settings = parameters.settings
    mistakes = Mistakes()
    notes = []
    if label := channels.get("train"):
        needed = OBJECTIVES[settings.objective].needs_some
        if needed and label.highest <= 0:
            mistakes.add(
                f"channel train has no label above 0 (they are {_shown(label)}), and "
                f"objective={settings.objective} needs {needed}."
            )
        if label.lowest == label.highest:
            notes.append(f"Every row of train has the label {label.lowest:g}: there is nothing to learn.")
    if classes is not None:
        with mistakes.collect():
            notes += _unused_classes(classes, list(channels.values()), stated=bool(settings.num_class))
    mistakes.raise_any()
    return notes


def _unused_classes(classes: int, channels: Sequence[Labels], *, stated: bool) -> list[str]:
    """Return the notice of classes without rows, if any. Raises UserError if labels make too many classes."""
    lists = [labels.different for labels in channels if labels.different is not None]
    if len(lists) < len(channels):
        return []
    known = set[float]().union(*lists)
    if not stated and classes > max(MOST_CLASSES, CLASSES_A_LABEL * len(known)):
        raise UserError(
            f"the {len(known)} different labels ({_listed(sorted(known))}) make {classes:,} classes, one "
            "more than the largest: number the classes 0, 1, 2 and so on, or set num_class."
        )
    count = classes - len(known.intersection(range(classes)))
    if not count:
        return []
    first = [*islice((label for label in range(classes) if label not in known), LISTED)]
    several = "es" if count > 1 else ""
    cure = "number the classes 0, 1, 2 and so on, unless such rows are to come."
    return [f"No row has class{several} {_listed(first, count)}: {cure}"]


def _which_column(settings: Hyperparameters, layout: Layout | None) -> str:
    """Return a sentence that names the label's column if the job does not set it: it may be the wrong one."""
    position = dict(layout.roles).get("label") if layout else None
    if layout is None or position is None or settings.label_column is not None:
        return ""
    return (
        f" The label is {shown_column(position, layout.columns)}, the first one; if that is the wrong "
        "column, set label_column."
    )


def _domains(parameters: Parsed) -> Iterator[tuple[str, str, Domain]]:
    """Yield each limit of the labels: who sets it, the cure beside other labels, and the labels it allows."""
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


def _classes(
    settings: Hyperparameters, channels: Mapping[str, Labels], rows: int | None, *, named: int
) -> int:
    if named and settings.num_class not in {None, named}:
        raise UserError(
            f"num_class={settings.num_class}, and there are {named} class labels: leave num_class out."
        )
    if named:
        return named
    highest = {channel: int(labels.highest) for channel, labels in channels.items()}
    classes = settings.num_class or max(2, 1 + max(highest.values()))
    mistakes = Mistakes()
    for channel, label in highest.items():
        if label >= classes:
            cure = f"set num_class={label + 1}, or leave it out to have the classes counted."
            if label == classes and all(labels.lowest >= 1 for labels in channels.values()):
                cure = "classes begin at 0: set class_labels=auto, or subtract 1."
            mistakes.add(
                f"channel {channel} has the label {label}, but num_class={classes} allows 0 to "
                f"{classes - 1}: {cure}"
            )
        elif rows is not None and label >= max(rows, 2) and not settings.num_class:
            mistakes.add(
                f"channel {channel} has the label {label}, which makes {classes:,} classes of {rows:,} rows: "
                "number the classes 0, 1, 2 and so on."
            )
    mistakes.raise_any()
    return classes


def _listed(labels: Sequence[float], count: int | None = None) -> str:
    """Return the first of some labels, which are `count` together."""
    more = f" and {count - LISTED:,} more" if (count := count or len(labels)) > LISTED else ""
    return ", ".join(f"{label:g}" for label in labels[:LISTED]) + more


def _shown(labels: Labels) -> str:
    if labels.different:
        return ", ".join(f"{label:g}" for label in labels.different)
    return f"from {labels.lowest:g} to {labels.highest:g}"
