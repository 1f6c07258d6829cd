"""The roles of a file's columns: which is the label, the weight, a feature."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING

from smxgb.batch import Layout, Role, Schema
from smxgb.errors import Mistakes, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smxgb.job import ColumnRef, DataSettings

SETTINGS: dict[Role, str] = {
    "label": "label_column",
    "weight": "weight_column",
    "group": "group_column",
    "lower": "label_lower_column",
    "upper": "label_upper_column",
}
"""The hyperparameter that names the column of each role."""

CSV_WEIGHTS_POSITION = 1
"""Where `csv_weights` has the weight: right after the label (SageMaker's XGBoost documentation)."""


def shown(position: int, name: str | None) -> str:
    """Return a column as messages show it: its index, as the settings count, and its name."""
    return f"column {position}" if name is None else f"column {position} ({name!r})"


def assigned(names: tuple[str, ...] | None, width: int, settings: DataSettings, source: str) -> Layout:
    """Return the layout of a channel's first file, whose `width` columns have `names`, if any.

    `source` is the file as messages show it. Raises UserError for settings that name no column of the file, that
    give one column two roles, or that leave no feature, and for names that occur twice.
    """
    mistakes = Mistakes()
    with mistakes.collect():
        check_names(names, source)
    finder = _Finder(names, width, source, mistakes)
    dropped = {finder.find("drop_columns", ref): "drop_columns" for ref in settings.drop}
    taken = {position: setting for position, setting in dropped.items() if position is not None}
    features = set(range(width)) - set(taken)
    roles: list[tuple[Role, int]] = []
    for role, ref, setting in _references(settings):
        position = finder.find(setting, ref)
        if position is None:
            continue
        if position in taken:
            mistakes.add(
                f"{setting} and {taken[position]} both name {shown(position, names and names[position])} of "
                f"{source}: a column has one role."
            )
        taken[position] = setting
        features.discard(position)
        roles.append((role, position))
    if settings.label is None and settings.lower is None and features:
        label = min(features)
        features.discard(label)
        roles.insert(0, ("label", label))
    mistakes.raise_any()
    if not features:
        raise UserError(
            f"{source} has {_columns(width)}, and none is left as a feature beside the label and the columns that "
            f"the settings name: the file needs at least one feature column; if it has another delimiter than the "
            f"one found, set csv_delimiter."
            if names is None
            else f"{source} has {_columns(width)}, and none is left as a feature beside the label and the columns "
            f"that the settings name: the file needs at least one feature column."
        )
    return Layout(names, width, tuple(sorted(features)), tuple(roles))


def aligned(layout: Layout, names: tuple[str, ...] | None, width: int, source: str, first: str) -> Layout:
    """Return the layout of another file: by name where both files have names, else by position.

    `first` is the file of `layout` as messages show it. Raises UserError where the columns differ.
    """
    if names is None or layout.columns is None:
        if width != layout.width:
            raise UserError(
                f"{source} has {_columns(width)} where {first} has {layout.width}: every file of every channel needs "
                f"the same columns."
            )
        return Layout(names, width, layout.features, layout.roles)
    check_names(names, source)
    if names == layout.columns:
        return layout
    _check_same(layout, names, source, first)
    position = {name: index for index, name in enumerate(names)}
    columns = layout.columns
    return Layout(
        names,
        width,
        tuple(position[columns[index]] for index in layout.features),
        tuple((role, position[columns[index]]) for role, index in layout.roles),
    )


def unweighted(layout: Layout) -> Layout:
    """Return the layout of a file that lacks only the weight column."""
    weight = dict(layout.roles)["weight"]

    def moved(position: int) -> int:
        return position - (position > weight)

    columns = layout.columns and tuple(name for index, name in enumerate(layout.columns) if index != weight)
    return Layout(
        columns,
        layout.width - 1,
        tuple(moved(index) for index in layout.features),
        tuple((role, moved(index)) for role, index in layout.roles if role != "weight"),
    )


def schema_of(layout: Layout) -> Schema:
    """Return the schema of files with this layout."""
    if layout.columns is None:
        return Schema.unnamed(len(layout.features), layout)
    columns = layout.columns
    return Schema(tuple(columns[index] for index in layout.features), invented=False, layout=layout)


def check_names(names: tuple[str, ...] | None, source: str) -> None:
    """Raise UserError if a name occurs twice."""
    twice = [name for name, count in Counter(names or ()).items() if count > 1]
    if twice:
        raise UserError(
            f"{source} has several columns with the same name: {_list(twice)}. Every column needs a name of its own."
        )


def _check_same(layout: Layout, names: tuple[str, ...], source: str, first: str) -> None:
    needed = {*layout.features, *(index for _, index in layout.roles)}
    columns = layout.columns or ()
    lacking = [shown(index, columns[index]) for index in sorted(needed) if columns[index] not in names]
    extra = [shown(index, name) for index, name in enumerate(names) if name not in columns]
    if not lacking and not extra:
        return
    texts = []
    if lacking:
        texts.append(f"lacks {_list(lacking)} of {first}")
    if extra:
        texts.append(f"has {_list(extra)}, which {first} has not")
    raise UserError(
        f"{source} {' and '.join(texts)}: it has {_columns(len(names))}, {first} has {len(columns)}. Every file of "
        f"every channel needs the same columns, in any order."
    )


def _references(settings: DataSettings) -> Iterable[tuple[Role, ColumnRef, str]]:
    for role, setting in SETTINGS.items():
        ref: ColumnRef | None = getattr(settings, role)
        if ref is not None:
            yield role, ref, setting
    if settings.csv_weights and settings.weight is None:
        yield "weight", CSV_WEIGHTS_POSITION, "csv_weights=1"


class _Finder:
    """Finds the columns that settings name in one file."""

    def __init__(self, names: tuple[str, ...] | None, width: int, source: str, mistakes: Mistakes) -> None:
        self._names = names
        self._width = width
        self._source = source
        self._mistakes = mistakes

    def find(self, setting: str, ref: ColumnRef) -> int | None:
        """Return the column's position, or None after noting the mistake."""
        if isinstance(ref, int):
            if -self._width <= ref < self._width:
                return ref % self._width
            self._mistakes.add(
                f"{_with(setting, ref)}: {self._source} has {_columns(self._width)}, so an index is one of "
                f"{-self._width} to {self._width - 1}."
            )
            return None
        if self._names is None:
            self._mistakes.add(
                f"{_with(setting, ref)}: {self._source} has no header with names; give the column's index, counted "
                f"from 0 (or csv_header=true, if its first record is a header)."
            )
            return None
        if ref in self._names:
            return self._names.index(ref)
        near = get_close_matches(ref, self._names, 1, 0.0)
        self._mistakes.add(
            f"{_with(setting, ref)}: {self._source} has no column of this name; the nearest is {near[0]!r}."
        )
        return None


def _with(setting: str, ref: ColumnRef) -> str:
    return setting if "=" in setting else f"{setting}={ref}"


def _columns(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"


def _list(words: list[str], limit: int = 10) -> str:
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more
