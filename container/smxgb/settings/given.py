"""What a job gives: the items of hyperparameters.json, sorted by what their names are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from smxgb.settings.hyperparameters import NAMES, OBSOLETE, Hyperparameters
from smxgb.settings.spellings import delimiter, is_unset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.errors import Mistakes

_SHOWN = 60
"""Characters of a value that a message shows."""

_SCRIPT_MODE = "sagemaker_"


@dataclass(frozen=True)
class Given:
    """The value of a setting, not decoded yet, and how messages show what the job gives, as eta='0.1'."""

    value: object
    shown: str

    @classmethod
    def of(cls, name: str, value: object) -> Given:
        """Return a value that was given under a name."""
        return cls(value, f"{name}={_shown(value)}")

    def as_value(self, value: object) -> Given:
        """Return what stands for another value: messages show it as the job gives it."""
        return replace(self, value=value)


@dataclass(frozen=True)
class Items:
    """The items of hyperparameters.json: declared settings that are not null, by their own names; others."""

    settings: dict[str, Given] = field(default_factory=dict)
    obsolete: dict[str, object] = field(default_factory=dict)
    script_mode: dict[str, object] = field(default_factory=dict)
    undeclared: dict[str, object] = field(default_factory=dict)


def sort_items(raw: Mapping[str, object], mistakes: Mistakes) -> Items:
    """Return the items by what their names are, after noting settings that have two values by two names."""
    sorted_ = Items()
    for given, value in raw.items():
        if given.startswith(_SCRIPT_MODE):
            sorted_.script_mode[given] = value
        elif given in OBSOLETE:
            sorted_.obsolete[given] = value
        elif given not in NAMES:
            sorted_.undeclared[given] = value
        elif not _is_null(NAMES[given], value):
            name, new = NAMES[given], Given.of(given, value)
            old = sorted_.settings.setdefault(name, new)
            if not _are_equal(name, old.value, value):
                mistakes.add(
                    f"{old.shown} and {new.shown} are two values of one setting: keep one of the two names."
                )
    return sorted_


def _is_null(name: str, value: object) -> bool:
    # A blank may be a delimiter.
    return delimiter(value) is None if name == "csv_delimiter" else is_unset(value)


def _are_equal(name: str, one: object, other: object) -> bool:
    """Return whether two texts decode to the same value; two that are not allowed are different."""
    if one == other:
        return True
    try:
        first, second = (Hyperparameters.model_validate({"num_round": 1, name: v}) for v in (one, other))
    except ValidationError:
        return False
    return first == second


def _shown(value: object) -> str:
    """Return a value so short that a message is not full of it, with both of its quotes."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]}...{text[-1]}"
