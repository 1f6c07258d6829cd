"""Signatures: what rows must have for a model to predict them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from smxgb import __version__
from smxgb.errors import UserError
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.schema import Layout
from smxgb.wording import counted, short

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smxgb.rows.schema import Schema

ATTRIBUTE = "smxgb"
"""The attribute of a booster that keeps what XGBoost itself does not keep of a signature."""

LISTED = 10
"""How many features one message names."""


class UnfitError(UserError):
    """Rows that can be read, and do not fit the model: other features than it has."""


@dataclass(frozen=True)
class Signature:
    """What rows must have for a model to predict them: its features, and how training has read their cells.

    `label` is the name of the label's column in the files of the training, None if it has none. `infinity`
    is the setting of the training, `objective` its objective. `classes` are labels that are words, in the
    order of their codes.
    """

    schema: Schema
    label: str | None = None
    infinity: Literal["error", "missing"] = "error"
    objective: str | None = None
    classes: tuple[str, ...] = ()

    @classmethod
    def of_training(cls, schema: Schema, infinity: Literal["error", "missing"], objective: str) -> Signature:
        """Return the signature of the model of a training."""
        layout = schema.layout
        position = dict(layout.roles).get("label") if layout else None
        label = layout.name(position) if layout and position is not None else None
        return cls(schema, label, infinity, objective, schema.classes)

    @classmethod
    def of_model(cls, schema: Schema, attribute: str | None) -> Signature:
        """Return the signature of a model with these features and this attribute, None if it has none."""
        try:
            kept = json.loads(attribute or "{}")
        except ValueError:
            kept = {}
        if not isinstance(kept, dict):
            kept = {}
        label, objective, classes = (kept.get(name) for name in ("label", "objective", "classes"))
        return cls(
            schema,
            label if isinstance(label, str) else None,
            "missing" if kept.get("infinity") == "missing" else "error",
            objective if isinstance(objective, str) else None,
            tuple(map(str, classes)) if isinstance(classes, list) else (),
        )

    @property
    def attribute(self) -> str:
        """The text of the attribute `ATTRIBUTE` of a booster."""
        kept = {
            "version": __version__,
            "objective": self.objective,
            "label": self.label,
            "infinity": self.infinity,
        } | ({"classes": list(self.classes)} if self.classes else {})
        return json.dumps(kept)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.schema.names)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, None if they were invented."""
        return None if self.schema.invented else self.schema.names

    @property
    def settings(self) -> ReadingSettings:
        """How cells are read."""
        return ReadingSettings(infinity=self.infinity)

    @cached_property
    def categorical(self) -> frozenset[str]:
        """The names of the features of categories."""
        return frozenset(self.schema.categories)

    def layout(
        self, names: tuple[str, ...] | None, width: int, source: str, *, label_first: bool = False
    ) -> Layout:
        """Return where the features are among the columns of some rows: by name if both have names.

        Columns that are no features of the model are passed over if they have names. With `label_first`, the
        first column of unnamed rows is the label.

        Raises:
            UnfitError: If a feature is not there, or if the number of unnamed columns is another.
        """
        if names is not None and self.names is not None:
            positions = {name: position for position, name in enumerate(names)}
            self._check_names(positions, len(names), source)
            features = tuple(positions[name] for name in self.names)
        else:
            first = int(label_first)
            if width != self.width + first:
                raise UnfitError(f"{source} {self._count_complaint(width, label_first=label_first)}")
            features = tuple(range(first, width))
        of_categories = zip(self.schema.names, features, strict=True)
        categorical = tuple(position for name, position in of_categories if name in self.categorical)
        return Layout(names, width, features, (), categorical)

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Return the features of the model that are not among these names, in order."""
        found = set(names)
        return [name for name in self.names or () if name not in found]

    def _check_names(self, names: Iterable[str], count: int, source: str) -> None:
        lacking = self.lacking(names)
        if lacking:
            raise UnfitError(
                f"{source} lacks {_listed(lacking)}: it names {counted(count, 'column')}, and the model has "
                f"{counted(self.width, 'feature')}, each of which is needed."
            )

    def _count_complaint(self, width: int, *, label_first: bool) -> str:
        needed = f"{counted(self.width, 'feature')}"
        if self.names is not None:
            needed += f" ({_listed(list(self.names))})"
        if label_first:
            return (
                f"has {counted(width, 'column')}, and the model has {needed}: with label_size=1, "
                f"{self.width + 1} are needed, the label first."
            )
        hint = ""
        if width == self.width + 1:
            hint = " If the first is the label, say so in the content type: text/csv; label_size=1."
        return (
            f"has {counted(width, 'column')}, and the model has {needed}: send the features alone, in the "
            f"order of the training.{hint}"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(repr(short(name)) for name in names[:LISTED]) + more
