"""The declared table in words: for error texts, for `describe`, and for the README."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from smxgb.hyperparameters.declaration import OBSOLETE, Hyperparameters, name_of, trait_of
from smxgb.metrics import METRICS, metric_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNBOUNDED = 2**31 - 1

CONTENT_TYPES: Mapping[str, tuple[str, ...]] = {
    "csv": ("text/csv", "csv"),
    "libsvm": ("text/libsvm", "text/x-libsvm", "libsvm"),
    "parquet": ("application/x-parquet", "parquet"),
    "recordio-protobuf": ("application/x-recordio-protobuf", "recordio-protobuf"),
}


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


def describe() -> dict[str, object]:
    """Return what this container takes and reports, ready for JSON.

    `metric_definitions` has the form of SageMaker's `MetricDefinitions` (Name, Regex), for automatic tuning.
    """
    return {
        "hyperparameters": [_described(field) for field in Hyperparameters.model_fields],
        "obsolete_hyperparameters": dict(OBSOLETE),
        "content_types": {kind: list(names) for kind, names in CONTENT_TYPES.items()},
        "channels": ["train", "validation"],
        "metrics": [
            {
                "name": name,
                "direction": "Maximize" if entry.maximise else "Minimize",
                "computed_by": entry.source,
            }
            for name, entry in METRICS.items()
        ],
        "metric_definitions": metric_definitions(),
    }


def _described(field: str) -> dict[str, object]:
    info, trait = Hyperparameters.model_fields[field], trait_of(field)
    described: dict[str, object] = {
        "name": name_of(field),
        "allowed": allowed(field),
        "required": info.is_required(),
        "default": None if info.is_required() else info.default,
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


def settings_table() -> str:
    """Return the README's tables of settings in Markdown: XGBoost's parameters, then the container's."""
    parts = []
    for use, title in (("xgboost", "XGBoost's parameters"), ("container", "The container's settings")):
        rows = [_row(field) for field in Hyperparameters.model_fields if trait_of(field).use == use]
        parts.append(
            "\n".join(
                [f"### {title}", "", "| name | allowed | default | meaning |", "|---|---|---|---|", *rows]
            )
        )
    return "\n\n".join(parts) + "\n"


def _row(field: str) -> str:
    info, trait = Hyperparameters.model_fields[field], trait_of(field)
    name = ", ".join(f"`{name}`" for name in (name_of(field), *trait.aliases))
    default = "**required**" if info.is_required() else _default_text(info.default, trait.use)
    tuned = f" (tuning: {trait.tune[0]:g} to {trait.tune[1]:g})" if trait.tune else ""
    return (
        f"| {name} | {allowed(field).replace('|', chr(92) + '|')}{tuned} | {default} | {info.description} |"
    )


def _default_text(default: object, use: str) -> str:
    if default is None:
        return "XGBoost's" if use == "xgboost" else ""
    return str(default).lower() if isinstance(default, bool) else "none" if default == () else f"{default}"
