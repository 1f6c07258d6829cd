"""The declared table in words: for error texts, for `describe`, and for the README."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from smxgb.settings.hyperparameters import OBSOLETE, TRAITS, Hyperparameters
from smxgb.settings.metrics import METRICS, MOST_DEFINITIONS, metric_definitions
from smxgb.settings.upstream import defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.settings.hyperparameters import Use

_UNBOUNDED = 2**31 - 1


_NOUNS = {
    "boolean": "true or false",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
}
"""What the types of JSON schema are called in a sentence."""


def allowed(name: str) -> str:
    """Return the values that a setting takes, as words that follow "it must be"."""
    return _words(_type_of(name))


def choices(name: str) -> tuple[str, ...]:
    """Return the words that a setting, or each item of a list, is chosen from; none if any value will do."""
    schema = _type_of(name)
    return tuple(schema.get("items", schema).get("enum", ()))


@cache
def _schema() -> Mapping[str, Any]:
    """Return the JSON schema of all settings, each by its name."""
    return Hyperparameters.model_json_schema()


def _type_of(name: str) -> Mapping[str, Any]:
    """Return the JSON schema of a setting's values, without the null of one that is not set."""
    schema: Mapping[str, Any] = _schema()["properties"][name]
    return next((some for some in schema.get("anyOf", ()) if some != {"type": "null"}), schema)


def _words(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"allowed": str(words)}:
            return words
        case {"enum": words}:
            return f"one of {', '.join(map(str, words))}"
        case {"type": "array", "items": item}:
            return f"{_words(item)}, or a list of such"
        case _:
            return f"{_NOUNS[schema['type']]}{_range(schema)}"


def _range(schema: Mapping[str, Any]) -> str:
    bounds = {key: value for key, value in schema.items() if key.endswith(("imum", "Minimum", "Maximum"))}
    match {key: value for key, value in bounds.items() if abs(value) < _UNBOUNDED}:
        case {"minimum": low, "maximum": high}:
            return f" from {low} to {high}"
        case {"exclusiveMinimum": low, "maximum": high}:
            return f" above {low}, up to {high}"
        case {"exclusiveMinimum": low, "exclusiveMaximum": high}:
            return f" above {low} and below {high}"
        case {"minimum": low}:
            return f", {low} or more"
        case {"exclusiveMinimum": low}:
            return f" above {low}"
        case _:
            return ""


def describe(content_types: Mapping[str, str]) -> dict[str, object]:
    """Return what this container takes and reports, ready for JSON; `content_types` by each of their names.

    `metric_definitions` has the form of SageMaker's `MetricDefinitions` (Name, Regex), for automatic tuning;
    a job takes `metric_definitions_of_a_job` of them at most.
    """
    upstream = defaults()
    return {
        "hyperparameters": [_described(name, upstream) for name in TRAITS],
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


def _described(name: str, upstream: Mapping[str, str]) -> dict[str, object]:
    trait, required = TRAITS[name], _is_required(name)
    described: dict[str, object] = {
        "name": name,
        "allowed": allowed(name),
        "required": required,
        "default": None if required else _default(name, upstream),
        "description": _meaning(name),
        "read_by": trait.use,
    }
    if choices(name):
        described["choices"] = list(choices(name))
    if trait.aliases:
        described["aliases"] = list(trait.aliases)
    if trait.tune:
        described["tunable_range"] = list(trait.tune)
    return described


def _is_required(name: str) -> bool:
    return name in _schema()["required"]


def _meaning(name: str) -> str:
    return str(_schema()["properties"][name]["description"])


def _default(name: str, upstream: Mapping[str, str]) -> object:
    """Return the value that a setting has where a job leaves it out; None where its meaning says which."""
    declared = _schema()["properties"][name]["default"]
    if declared is not None or TRAITS[name].use != "xgboost" or TRAITS[name].varies:
        return declared
    text = upstream[name]
    match _type_of(name):
        case {"type": "boolean"}:
            return text != "0"
        case {"type": "integer"}:
            return int(text)
        case {"type": "number"}:
            return float(f"{float(text):.6g}")
        case _:
            return text


def settings_table() -> str:
    """Return the README's tables of settings and metrics in Markdown, those that most jobs set first."""
    upstream = defaults()
    common = [name for name, trait in TRAITS.items() if trait.common]
    obsolete = ", ".join(f"`{name}` ({reason})" for name, reason in sorted(OBSOLETE.items()))
    return "\n\n".join(
        (
            _table(common, upstream),
            _folded("All other parameters of XGBoost", _table(_others("xgboost"), upstream)),
            _folded("The container's other settings", _table(_others("container"), upstream)),
            _folded("Metrics for `eval_metric`", _metrics()),
            f"Obsolete, accepted with a line in the log that says why: {obsolete}.\n",
        )
    )


def _others(use: Use) -> list[str]:
    return [name for name, trait in TRAITS.items() if trait.use == use and not trait.common]


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


def _table(names: list[str], upstream: Mapping[str, str]) -> str:
    head = ["| name | allowed | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(name, upstream) for name in names)])


def _row(name: str, upstream: Mapping[str, str]) -> str:
    trait = TRAITS[name]
    names = ", ".join(f"`{given}`" for given in (name, *trait.aliases))
    default = "**required**" if _is_required(name) else _default_text(_default(name, upstream))
    tuned = f" (tuning: {trait.tune[0]:g} to {trait.tune[1]:g})" if trait.tune else ""
    return f"| {names} | {allowed(name).replace('|', '\\|')}{tuned} | {default} | {_meaning(name)} |"


def _default_text(default: object) -> str:
    match default:
        case None:
            return ""
        case []:
            return "none"
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
    return str(default)
