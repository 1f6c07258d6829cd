"""The roles of a file's columns: which is the label, the weight, a feature."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from smxgb.batch import Layout, Role, Schema
from smxgb.errors import Mistakes, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.hyperparameters import ColumnRef
    from smxgb.job import DataSettings

SETTINGS: dict[Role, str] = {
    "label": "label_column",
    "weight": "weight_column",
    "group": "group_column",
    "lower": "label_lower_column",
    "upper": "label_upper_column",
}
"""The hyperparameter that names the column of each role."""

CSV_WEIGHTS_POSITION = 1
"""Where `csv_weights` has the weight: right after the label (SageMaker's documentation of XGBoost)."""

WIDEST = 100_000
"""Columns of a table. Each costs 10 KB, and 0.2 ms a batch, of which a table so wide has one for 41 rows."""

LISTED = 10
"""How many columns one message names."""


def shown(position: int, names: tuple[str, ...] | None) -> str:
    """Return a column as messages show it: its index, as the settings count, and its name if it has one."""
    return f"column {position}" if names is None else f"column {position} ({names[position]!r})"


def assigned(names: tuple[str, ...] | None, width: int, settings: DataSettings, source: str) -> Layout:
    """Return the layout of a channel's first file, whose `width` columns have `names`, if any.

    `source` is the file as messages show it. The label is the first column left if no setting names one, and
    none if bounds take its place. Raises UserError for settings that name no column of the file, that give
    one column two roles, or that leave no feature, and for names that occur twice.
    """
    if width > WIDEST:
        raise UserError(
            f"{source} has {width:,} columns, and a table can have {WIDEST:,} at most: check that each "
            "record ends with a line end."
        )
    mistakes = Mistakes()
    with mistakes.collect():
        check_names(names, source)
    taken: dict[int, str] = {}
    roles: list[tuple[Role, int]] = []
    for role, ref, setting in _references(settings):
        with mistakes.collect():
            position = _find(setting, ref, names, width, source)
            if role is None:  # a column may be dropped by its index and by its name
                taken[position] = setting
                continue
            if position in taken:
                raise UserError(
                    f"{taken[position]} and {setting} both name {shown(position, names)} of {source}: a "
                    "column has one role."
                )
            taken[position] = setting
            roles.append((role, position))
    categorical: list[int] = []
    for ref in dict.fromkeys(settings.categorical):
        with mistakes.collect():
            position = _find(f"categorical_columns={ref}", ref, names, width, source)
            if position in taken:
                raise UserError(
                    f"{taken[position]} and categorical_columns={ref} both name {shown(position, names)} of "
                    f"{source}: a column that is no feature has no categories."
                )
            categorical.append(position)
    mistakes.raise_any()
    left = [position for position in range(width) if position not in taken]
    if left and settings.label is None and settings.lower is None:
        if left[0] in categorical:
            raise UserError(
                f"categorical_columns names {shown(left[0], names)} of {source}, which is the label, the "
                "first "
                "column that is left: name the label with label_column."
            )
        roles.append(("label", left.pop(0)))
    if not left:
        raise UserError(
            f"{source} has {_columns(width)}, which leaves no feature beside the label and the columns that "
            "settings name: add feature columns, or set csv_delimiter if the file is CSV with an unusual one."
        )
    return Layout(names, width, tuple(left), tuple(roles), tuple(categorical))


def aligned(layout: Layout, names: tuple[str, ...] | None, width: int, source: str, first: str) -> Layout:
    """Return the layout of another file: by name where both files have names, else by position.

    `first` is the file, or channel, of `layout` as messages show it. Raises UserError where columns differ.
    """
    if names is None or layout.columns is None:
        if width == layout.width:
            return replace(layout, columns=names)
        raise UserError(
            f"{source} has {_columns(width)}, {first} has {layout.width}: every file of every channel needs "
            "the same columns."
        )
    if names == layout.columns:
        return layout
    check_names(names, source)
    _check_same(layout, names, source, first)
    columns = layout.columns
    position = {name: index for index, name in enumerate(names)}
    return Layout(
        names,
        width,
        tuple(position[columns[index]] for index in layout.features),
        tuple((role, position[columns[index]]) for role, index in layout.roles),
        tuple(position[columns[index]] for index in layout.categorical),
    )


def unweighted(layout: Layout) -> Layout:
    """Return the layout of a file that lacks only the weight column."""
    weight = dict(layout.roles)["weight"]

    def moved(position: int) -> int:
        return position - (position > weight)

    return Layout(
        layout.columns and (*layout.columns[:weight], *layout.columns[weight + 1 :]),
        layout.width - 1,
        tuple(moved(index) for index in layout.features),
        tuple((role, moved(index)) for role, index in layout.roles if role != "weight"),
        tuple(moved(index) for index in layout.categorical),
    )


def schema_of(layout: Layout) -> Schema:
    """Return the schema of files with this layout."""
    columns = layout.columns
    schema = (
        Schema.unnamed(len(layout.features), layout)
        if columns is None
        else Schema(tuple(columns[index] for index in layout.features), invented=False, layout=layout)
    )
    named = zip(schema.names, layout.features, strict=True)
    return replace(schema, categories={name: () for name, index in named if index in layout.categorical})


def chosen(layout: Layout, own: Schema, wanted: Schema) -> tuple[int, ...]:
    """Return where in a file the features of `wanted` stand, of those that its channel's schema `own` has."""
    names = set(wanted.names)
    return tuple(index for name, index in zip(own.names, layout.features, strict=True) if name in names)


def check_names(names: tuple[str, ...] | None, source: str) -> None:
    """Raise UserError if a name occurs twice."""
    twice = [repr(name) for name, count in Counter(names or ()).items() if count > 1]
    if twice:
        raise UserError(
            f"{source} has several columns of the same name: {_list(twice)}. Give each a name of its own."
        )


def _check_same(layout: Layout, names: tuple[str, ...], source: str, first: str) -> None:
    columns = layout.columns or ()
    needed = sorted({*layout.features, *(index for _, index in layout.roles)})
    lacking = [shown(index, columns) for index in needed if columns[index] not in names]
    extra = [shown(index, names) for index, name in enumerate(names) if name not in columns]
    texts = []
    if lacking:
        texts.append(f"lacks {_list(lacking)} of {first}")
    if extra:
        texts.append(f"has {_list(extra)}, which {first} has not")
    if texts:
        raise UserError(
            f"{source} {' and '.join(texts)}: it has {_columns(len(names))}, {first} has {len(columns)}. "
            "Every file of every channel needs the same columns, in any order."
        )


def _references(settings: DataSettings) -> Iterator[tuple[Role | None, ColumnRef, str]]:
    """Yield each column that the settings name, with its role (None: dropped) and the setting as given."""
    for ref in dict.fromkeys(settings.drop):
        yield None, ref, f"drop_columns={ref}"
    for role, setting in SETTINGS.items():
        ref = getattr(settings, role)
        if ref is not None:
            yield role, ref, f"{setting}={ref}"
    if settings.csv_weights:
        yield "weight", CSV_WEIGHTS_POSITION, "csv_weights=1"


def _find(setting: str, ref: ColumnRef, names: tuple[str, ...] | None, width: int, source: str) -> int:
    """Return the column's position. Raises UserError if the file has no such column."""
    if isinstance(ref, int):
        if -width <= ref < width:
            return ref % width
        raise UserError(
            f"{setting}: {source} has {_columns(width)}, so an index is one of {-width} to {width - 1}."
        )
    if names is None:
        raise UserError(
            f"{setting}: {source} has no header with names. Give the column's index, counted from 0, or set "
            "csv_header=true if its first record is a header."
        )
    if ref in names:
        return names.index(ref)
    nearest = get_close_matches(ref, names, 1, 0.0)[0]
    raise UserError(f"{setting}: {source} has no column of this name; the nearest is {nearest!r}.")


def _columns(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"


def _list(words: list[str]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more
