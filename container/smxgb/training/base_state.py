"""The state from which training goes on from a model of an earlier job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.training.state import TrainingState

if TYPE_CHECKING:
    from smxgb.job import BaseModel
    from smxgb.rows import Schema

SHOWN = 5
"""At most 5 names are shown."""


def state_of(base: BaseModel, schema: Schema, *, update: bool) -> TrainingState:
    """Return the state in which training begins; with `update` the model's rounds are changed one by one.

    Raises UserError if the features of the rows are not those of the model.
    """
    _check_features(base, schema)
    return TrainingState(0 if update else base.rounds, base.data)


def _check_features(base: BaseModel, schema: Schema) -> None:
    if base.features != len(schema.names):
        raise UserError(
            f"{base.place} has {base.features} features and the rows have {len(schema.names)}{CURE}."
        )
    if base.names and not schema.invented and base.names != schema.names:
        raise UserError(f"{base.place}: {_difference(base.names, schema.names)}{CURE}.")
    if None not in (base.first_index, schema.first_index) and base.first_index != schema.first_index:
        raise UserError(
            f"{base.place} was trained on libsvm files whose first feature is {base.first_index}, and here "
            f"it is {schema.first_index}: set libsvm_indexing={base.first_index}."
        )
    for index, name in enumerate(schema.names):
        trained = base.categories[index] if base.categories else None
        found = schema.categories.get(name)
        if trained != found:
            raise UserError(
                f"{base.place}: its feature {name!r} has {_shown(trained)}, and in the rows it has "
                f"{_shown(found)}{CURE}."
            )


CURE = ": give rows with the features of the model"


def _difference(model: tuple[str, ...], rows: tuple[str, ...]) -> str:
    missing = [name for name in model if name not in set(rows)]
    new = [name for name in rows if name not in set(model)]
    if missing or new:
        return f"the rows lack its features {_names(missing)}, and have {_names(new)} instead"
    index = next(i for i, pair in enumerate(zip(model, rows, strict=True)) if pair[0] != pair[1])
    return f"its features are in another order, number {index} is {model[index]!r} and not {rows[index]!r}"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(map(repr, names[:SHOWN]))}{more}"


def _shown(categories: tuple[str, ...] | None) -> str:
    if categories is None:
        return "numbers"
    return f"the categories {_names(list(categories))}"
