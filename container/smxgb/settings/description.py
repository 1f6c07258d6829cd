"""The declared table in words: for error texts, for `describe`, and for the README."""

from __future__ import annotations

import re
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from smxgb.settings.declaration import OBSOLETE, Hyperparameters, Use, name_of, trait_of
from smxgb.settings.metrics import METRICS, MOST_DEFINITIONS, metric_definitions
from smxgb.settings.upstream import defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

USES: tuple[Use, ...] = get_args(Use)

COMMON = frozenset(
    {
        "num_round",
        "objective",
        "eval_metric",
        "early_stopping_rounds",
        "eta",
        "max_depth",
        "min_child_weight",
        "subsample",
        "colsample_bytree",
        "seed",
        "label_column",
    }
)
"""The settings that most jobs have; the README shows them first."""

_BY_THE_JOB = frozenset(
    {
        "num_class",
        "device",
        "nthread",
        "seed_per_iteration",
        "base_score",
        "monotone_constraints",
        "interaction_constraints",
        "updater",
        "quantile_alpha",
        "expectile_alpha",
        "lambdarank_num_pair_per_sample",
    }
)
"""Parameters of XGBoost without one value of their own: the data, the machine or other settings decide."""

_UNBOUNDED = 2**31 - 1


def allowed(field: str) -> str:
    """Return the values that a setting takes, as words that follow "it must be"."""
    if field == "csv_delimiter":
        return "auto, tab, or one character that is no letter, digit, quote, dot or sign"
    if field == "monotone_constraints":
        return '-1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}'
    if field == "interaction_constraints":
        return 'groups of features by position or name, as [[0,1],[2,3]] or [["age","height"]]'
    return _words(
        Hyperparameters.model_fields[field].annotation, Hyperparameters.model_fields[field].metadata
    )


def choices(field: str) -> tuple[str, ...]:
    """Return the words that a setting is chosen from, empty if it is no choice."""
    annotation, _ = _core(Hyperparameters.model_fields[field].annotation, [])
    if get_origin(annotation) is tuple:
        annotation = get_args(annotation)[0]
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _words(annotation: Any, metadata: list[Any]) -> str:
    annotation, metadata = _core(annotation, metadata)
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if get_origin(annotation) is tuple:
        return f"{_words(get_args(annotation)[0], [])}, or a list of such"
    if annotation is bool:
        return "true or false"
    if annotation in {int, float}:
        return _range("a whole number" if annotation is int else "a number", metadata)
    if annotation is str:
        return "a text"
    return "a column's name, or its index (negative: from the end)"


def _core(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """Return an annotation without "or None" and `Annotated`, and the limits found on the way."""
    if get_origin(annotation) in {UnionType, Union}:
        members = [member for member in get_args(annotation) if member is not type(None)]
        return _core(members[0], metadata) if len(members) == 1 else (annotation, metadata)
    if get_origin(annotation) is Annotated:
        inner, *fields = get_args(annotation)
        return _core(inner, [*metadata, *(limit for field in fields for limit in field.metadata)])
    return annotation, metadata


def _range(noun: str, metadata: list[Any]) -> str:
    limits = {
        side: getattr(limit, side)
        for limit in metadata
        for side in ("ge", "gt", "le", "lt")
        if hasattr(limit, side)
    }
    if limits.get("le", 0) >= _UNBOUNDED:
        del limits["le"]
    if limits.get("ge", 0) <= -_UNBOUNDED:
        del limits["ge"]
    match limits:
        case {"ge": low, "le": high}:
            return f"{noun} from {low} to {high}"
        case {"gt": low, "le": high}:
            return f"{noun} above {low}, up to {high}"
        case {"gt": low, "lt": high}:
            return f"{noun} above {low} and below {high}"
        case {"ge": low}:
            return f"{noun}, {low} or more"
        case {"gt": low}:
            return f"{noun} above {low}"
        case _:
            return noun


def describe(content_types: Mapping[str, str]) -> dict[str, object]:
    """Return what this container takes and reports, ready for JSON; `content_types` by each of their names.

    `metric_definitions` has the form of SageMaker's `MetricDefinitions` (Name, Regex), for automatic tuning;
    a job takes `metric_definitions_of_a_job` of them at most.
    """
    upstream = defaults()
    return {
        "hyperparameters": [_described(field, upstream) for field in Hyperparameters.model_fields],
        "obsolete_hyperparameters": dict(OBSOLETE),
        "content_types": {
            kind: [name for name, named in content_types.items() if named == kind]
            for kind in dict.fromkeys(content_types.values())
        },
        "channels": ["train", "validation"],
        "metrics": [
            {
                "name": name,
                "direction": "Maximize" if entry.maximise else "Minimize",
                "computed_by": entry.source,
            }
            for name, entry in METRICS.items()
        ],
        "metric_definitions_of_a_job": MOST_DEFINITIONS,
        "metric_definitions": metric_definitions(),
    }


def _described(field: str, upstream: Mapping[str, str]) -> dict[str, object]:
    info, trait = Hyperparameters.model_fields[field], trait_of(field)
    described: dict[str, object] = {
        "name": name_of(field),
        "allowed": allowed(field),
        "required": info.is_required(),
        "default": None if info.is_required() else _default(field, upstream),
        "description": info.description,
        "read_by": trait.use,
    }
    if choices(field):
        described["choices"] = list(choices(field))
    if trait.aliases:
        described["aliases"] = list(trait.aliases)
    if trait.tune:
        described["tunable_range"] = list(trait.tune)
    return described


def _default(field: str, upstream: Mapping[str, str]) -> object:
    """Return the value that a setting has where a job leaves it out; None where its meaning says which."""
    declared = Hyperparameters.model_fields[field].default
    if declared is not None or trait_of(field).use != "xgboost" or field in _BY_THE_JOB:
        return declared
    text = upstream[name_of(field)]
    kind, _ = _core(Hyperparameters.model_fields[field].annotation, [])
    if kind is bool:
        return text != "0"
    return kind(f"{float(text):.6g}") if kind in {int, float} else text


def settings_table() -> str:
    """Return the README's tables of settings and metrics in Markdown, those that most jobs set first."""
    upstream = defaults()
    fields = {use: [f for f in Hyperparameters.model_fields if trait_of(f).use == use] for use in USES}
    common = [field for field in Hyperparameters.model_fields if name_of(field) in COMMON]
    others = {use: [field for field in fields[use] if field not in common] for use in USES}
    later = ", ".join(f"`{name_of(field)}`" for field in fields["later"]) or "none"
    obsolete = ", ".join(f"`{name}` ({reason})" for name, reason in sorted(OBSOLETE.items()))
    return "\n\n".join(
        (
            _table(common, upstream),
            _folded("All other parameters of XGBoost", _table(others["xgboost"], upstream)),
            _folded("The container's other settings", _table(others["container"], upstream)),
            _folded("Metrics for `eval_metric`", _metrics()),
            f"Not in this version, which takes nothing but their defaults: {later}.",
            f"Obsolete, accepted with a line in the log that says why: {obsolete}.\n",
        )
    )


def _folded(title: str, content: str) -> str:
    shown = re.sub("`(.+?)`", r"<code>\1</code>", title)
    return f"<details><summary>{shown}</summary>\n\n{content}\n\n</details>"


def _metrics() -> str:
    lists = {
        direction: ", ".join(f"`{name}`" for name, entry in METRICS.items() if entry.maximise == maximise)
        for direction, maximise in (("Higher is better", True), ("Lower is better", False))
    }
    at = "Some take a threshold or a rank after an @: `error@0.7`, `ndcg@10`, `map@5`, `pre@3`."
    return "\n\n".join([*(f"{direction}: {names}." for direction, names in lists.items()), at])


def _table(fields: list[str], upstream: Mapping[str, str]) -> str:
    head = ["| name | allowed | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(field, upstream) for field in fields)])


def _row(field: str, upstream: Mapping[str, str]) -> str:
    info, trait = Hyperparameters.model_fields[field], trait_of(field)
    name = ", ".join(f"`{name}`" for name in (name_of(field), *trait.aliases))
    default = "**required**" if info.is_required() else _default_text(_default(field, upstream))
    tuned = f" (tuning: {trait.tune[0]:g} to {trait.tune[1]:g})" if trait.tune else ""
    return f"| {name} | {allowed(field).replace('|', '\\|')}{tuned} | {default} | {info.description} |"


def _default_text(default: object) -> str:
    match default:
        case None:
            return ""
        case ():
            return "none"
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
    return str(default)
