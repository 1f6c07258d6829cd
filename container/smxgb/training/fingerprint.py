"""The fingerprint of a job: all that shapes its model, so that no checkpoint of another job is taken up."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from smxgb.settings import shaping_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import BaseModel
    from smxgb.rows import Schema, Summary
    from smxgb.settings import Parsed

type Facts = Mapping[str, str]
"""What shapes a model, each by its name, as JSON."""

LONGEST = 60
"""Characters of a value in a message."""


def fingerprint(
    parameters: Parsed,
    schema: Schema,
    rows: Mapping[str, Summary],
    classes: int | None,
    base: BaseModel | None = None,
) -> Facts:
    """Return what shapes the model of a job: its settings, features, rows and the model that it goes on from.

    Not among it are the number of rounds, metrics, the device, hosts, and how the job is run.
    """
    facts: dict[str, object] = {**shaping_settings(parameters), "classes": classes}
    facts["features"] = len(schema.names)
    if not schema.invented:
        facts["feature names"] = schema.names
    if schema.classes:
        facts["class labels"] = schema.classes
    facts |= {f"categories of {name}": found for name, found in schema.categories.items()}
    if base:
        facts["model of channel 'model'"] = hashlib.sha256(base.data).hexdigest()[:8]
    for name, summary in rows.items():
        facts[f"rows of {name}"] = summary.rows
        if summary.label:
            facts[f"labels of {name}"] = (summary.label.lowest, summary.label.highest)
    return {name: json.dumps(value) for name, value in facts.items() if value is not None}


def digest(facts: Facts) -> str:
    """Return 8 hexadecimal digits that stand for the facts, in the names of checkpoints."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def differences(then: Facts, now: Facts) -> Iterator[str]:
    """Yield what has changed, a clause for each fact."""
    for name in sorted({**then, **now}):
        before, after = then.get(name), now.get(name)
        if before != after:
            yield _difference(name, before, after)


def _difference(name: str, before: str | None, after: str | None) -> str:
    if before is None or after is None:
        return f"{name} was {_shown(before)} and is {_shown(after)}"
    pair = json.loads(before), json.loads(after)
    if all(isinstance(value, list) and len(value) == len(pair[0]) for value in pair):
        index = next(i for i, (one, other) in enumerate(zip(*pair, strict=True)) if one != other)
        return f"{name}: number {index} was {pair[0][index]!r} and is {pair[1][index]!r}"
    return f"{name} was {_shown(before)} and is {_shown(after)}"


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
