"""The roles of a file's columns: which is the label, the weight, a feature."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes, UserError
from smxgb.literals import integer
from smxgb.log import log, notice
from smxgb.rows.roles import ROLES
from smxgb.rows.row_numbers import UNNAMED, unnamed
from smxgb.rows.schema import Layout
from smxgb.wording import short, shown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smxgb.job import Name
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.roles import RoleName
    from smxgb.settings import ColumnRef

WIDEST = 100_000
"""The most columns of a table. Each costs 10 KB, and 0.2 ms a batch; a batch of so many has 41 rows."""

UNSET = frozenset({"none", "null"})
"""Names of columns that say, as the value of a setting, that it is not given."""

LISTED = 10
"""How many columns one message names."""


def index_of(ref: ColumnRef) -> int | None:
    """Return the index that a setting gives of a column, None if it gives a name."""
    found = integer(ref)
    return found if isinstance(found, int) else None


def label_index(settings: ReadingSettings) -> int | None:
    """Return the label's index as far as the settings tell it, None if that takes the names of columns."""
    columns = settings.columns
    ref = columns.get("lower", columns.get("label"))
    if ref is not None:
        return index_of(ref)
    dropped = (ref for ref in settings.drop if ref not in settings.absent)
    others = [*dropped, columns.get("weight"), columns.get("group")]
    if any(isinstance(other, str) for other in others):
        return None
    return next(index for index in count() if index not in others)


def asked_names(settings: ReadingSettings) -> frozenset[str]:
    """Return the columns that settings name, and do not count."""
    refs = [*settings.drop, *settings.categorical, *settings.columns.values()]
    return frozenset(ref for ref in refs if isinstance(ref, str) and index_of(ref) is None)


def assigned(
    names: tuple[str, ...] | None,
    width: int,
    settings: ReadingSettings,
    source: str,
    counts: Callable[[int], bool] | None = None,
) -> Layout:
    """Return the layout of a channel's first file, whose `width` columns have `names`, if any.

    `source` is the file as messages show it, `counts` tells whether a column of its first rows counts them.
    The label is the first column left if no setting names one, and none if bounds take its place. Raises
    UserError for settings that name no column of the file, that give one column two roles, or that leave no
    feature, for names that occur twice, and for a first column without a name that does not count.
    """
    if width > WIDEST:
        raise UserError(
            f"{source} has {width:,} columns, and a table can have {WIDEST:,} at most: check that each "
            "record ends with a line end."
        )
    named, roles, categorical = _chosen_columns(names, width, settings, source)
    numbers = _row_numbers(names, {*named, *categorical}, source, counts)
    left = [position for position in range(width) if position not in named and position not in numbers]
    if left and not settings.columns.keys() & {"label", "lower"}:
        _notice_unset_name(names, source)
        roles.append(("label", left.pop(0)))
    if settings.csv_weights and "label" in dict(roles):
        roles.append(("weight", _after_label(roles, left, names, source)))
    for role, position in roles:
        if position in categorical:
            raise UserError(
                f"categorical_columns names {shown_column(position, names)} of {source}, which is the {role} "
                f"by its place: name the {role} with {ROLES[role].setting}."
            )
    if not left:
        raise UserError(
            f"{source} has {_columns(width)}, which leaves no feature beside the label and the columns that "
            "settings name: add feature columns, or set csv_delimiter if the file is CSV with an unusual one."
        )
    layout = Layout(names, width, tuple(left), tuple(roles), tuple(categorical), numbers)
    log(_described(layout, chosen_label="label" in settings.columns))
    _notice_unnamed_features(layout, source)
    return layout


def _notice_unnamed_features(layout: Layout, source: str) -> None:
    """Say that a feature has no name: it may be an index that was moved, or the end of lines with a comma."""
    found = [index for index in layout.features if UNNAMED.fullmatch(layout.name(index) or "")]
    if found:
        listed = _list([f"column {index}" for index in found])
        notice(
            f"{source}: {listed} {'have' if len(found) > 1 else 'has'} no name, as an index that a table was "
            "saved with, or lines that end with a delimiter: if it is no feature, leave it out with "
            "drop_columns."
        )


def _notice_unset_name(names: tuple[str, ...] | None, source: str) -> None:
    unset = next((name for name in names or () if name.lower() in UNSET), None)
    if unset is not None:
        notice(
            f"{source}: a column is called {unset!r}, which as a setting means that none is given: the "
            "label is "
            "the first column. If it is that one, give its index in label_column."
        )


def _row_numbers(
    names: tuple[str, ...] | None, chosen: set[int], source: str, counts: Callable[[int], bool] | None
) -> tuple[int, ...]:
    """Return the columns that are left out for they count the rows; settings name the `chosen` ones.

    Raises UserError for the first column without a name that does not count.
    """
    found = tuple(position for position in unnamed(names) if position not in chosen)
    for position in found:
        if counts is not None and not counts(position):
            which = "the first column" if position == 0 else f"column {position}"
            raise UserError(
                f"{source}: {which} has no name, as in a table that pandas saved with its index. "
                f"Leave it out with drop_columns={position}, or save the table with index=False."
            )
    if found:
        listed = _list([f"column {position}" for position in found])
        notice(
            f"{source}: {listed} without a name {'count' if len(found) > 1 else 'counts'} the rows, as the "
            "index of a table that pandas saved does, and is no label and no feature: it is left out. "
            "Save the table with index=False."
        )
    return found


def _chosen_columns(
    names: tuple[str, ...] | None, width: int, settings: ReadingSettings, source: str
) -> tuple[dict[int, str], list[tuple[RoleName, int]], list[int]]:
    """Return the columns that settings name: no features, each with its setting; roles; categories."""
    mistakes = Mistakes()
    with mistakes.collect():
        check_names(names, source)
    named: dict[int, str] = {}
    roles: list[tuple[RoleName, int]] = []
    for role, ref, setting in _references(settings, names):
        with mistakes.collect():
            position = _find(setting, ref, names, width, source)
            if role is None:  # a column may be dropped by its index and by its name
                named[position] = setting
                continue
            if position in named:
                raise UserError(
                    f"{named[position]} and {setting} both name {shown_column(position, names)} of {source}: "
                    "a column has one role."
                )
            named[position] = setting
            roles.append((role, position))
    categorical: list[int] = []
    for ref in dict.fromkeys(settings.categorical):
        with mistakes.collect():
            position = _find(f"categorical_columns={ref}", ref, names, width, source)
            if position in named:
                raise UserError(
                    f"{named[position]} and categorical_columns={ref} both name "
                    f"{shown_column(position, names)} of {source}: a column that is no feature has no "
                    "categories."
                )
            categorical.append(position)
    mistakes.raise_any()
    return named, roles, categorical


def _described(layout: Layout, *, chosen_label: bool) -> str:
    """Return the line of the log that says what is the label: often it is another column than was meant."""
    parts = []
    for role, position in layout.roles:
        name = layout.name(position)
        where = f"column {position}" + (", the first one" if role == "label" and not chosen_label else "")
        parts.append(f"{ROLES[role].word}: {where if name is None else f'{short(name)!r} ({where})'}.")
    count = f"{len(layout.features):,}"
    if layout.columns is not None:
        names = [short(layout.columns[position]) for position in layout.features]
        count = f"{_list(names)} ({count})"
    return " ".join([*parts, f"Features: {count}."])


def aligned(layout: Layout, names: tuple[str, ...] | None, width: int, source: str, first: str) -> Layout:
    """Return the layout of another file: by name where both files have names, else by position.

    `first` is the file, or channel, of `layout` as messages show it. Raises UserError where columns differ.
    """
    if names is None or layout.columns is None:
        if width == layout.width:
            # A file without names has those of the first one, in their order.
            return layout if names is None else replace(layout, columns=names)
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
        tuple(position[columns[index]] for index in layout.row_numbers if columns[index] in position),
        tuple(position[columns[index]] for index in layout.letters if columns[index] in position),
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
        tuple(moved(index) for index in layout.row_numbers),
        tuple(moved(index) for index in layout.letters),
    )


def chosen(layout: Layout, names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...]:
    """Return where the `wanted` features stand in a file; `names` are those of all its features, in order."""
    found = set(wanted)
    return tuple(index for name, index in zip(names, layout.features, strict=True) if name in found)


def check_partitions(channel: Name, names: tuple[str, ...] | None, settings: ReadingSettings) -> None:
    """Raise UserError for columns that only the names of a channel's folders hold.

    `names` are those that its first file has, if any: a table may hold the columns all the same.
    """
    mistakes = Mistakes()
    for found in settings.partitions:
        name = found.column
        is_needed = found.channel == channel and found.varies and name not in settings.drop
        if is_needed and name not in (names or ()):
            mistakes.add(
                f"channel '{channel}' has folders named {name}={found.value} and the like, as a table "
                f"partitioned by {name!r} has: no file holds that column, and it is not read. Write the "
                f"table unpartitioned, or leave the column out with drop_columns={name}."
            )
    mistakes.raise_any()


def check_names(names: tuple[str, ...] | None, source: str) -> None:
    """Raise UserError if a name occurs twice."""
    twice = [repr(short(name)) for name, times in Counter(names or ()).items() if times > 1]
    if twice:
        raise UserError(
            f"{source} has several columns of the same name: {_list(twice)}. Give each a name of its own."
        )


def _check_same(layout: Layout, names: tuple[str, ...], source: str, first: str) -> None:
    columns = layout.columns or ()
    needed = sorted({*layout.features, *(index for _, index in layout.roles)})
    lacking = [shown_column(index, columns) for index in needed if columns[index] not in names]
    extra = [shown_column(index, names) for index, name in enumerate(names) if name not in columns]
    texts = []
    if lacking:
        texts.append(f"lacks {_list(lacking)} of {first}")
    if extra:
        texts.append(f"has {_list(extra)}, which {first} does not have")
    if texts:
        raise UserError(
            f"{source} {' and '.join(texts)}: it has {_columns(len(names))}, {first} has {len(columns)}. "
            "Every file of every channel needs the same columns, in any order."
        )


def _references(
    settings: ReadingSettings, names: tuple[str, ...] | None
) -> Iterator[tuple[RoleName | None, ColumnRef, str]]:
    """Yield each column that the settings name, with its role (None: dropped) and the setting as given.

    A file, whose columns have `names`, may lack those that folders hold.
    """
    absent = settings.absent.difference(names or ())
    for ref in dict.fromkeys(ref for ref in settings.drop if ref not in absent):
        yield None, ref, f"drop_columns={short(str(ref))}"
    for name, role in ROLES.items():
        if name in settings.columns:
            ref = settings.columns[name]
            yield name, ref, f"{role.setting}={short(str(ref))}"


def _after_label(
    roles: list[tuple[RoleName, int]], left: list[int], names: tuple[str, ...] | None, source: str
) -> int:
    """Take the column of `csv_weights` out of those that are left, and return its position.

    It stands right after the label (SageMaker's documentation of XGBoost), of the columns that are left: some
    may have been dropped before the label or after it.
    """
    label = dict(roles)["label"]
    after = [position for position in left if position > label]
    if not after:
        raise UserError(
            f"csv_weights=1 takes the column right after the label for the weights, and the label, "
            f"{shown_column(label, names)} of {source}, is the last: name the column in weight_column "
            "instead."
        )
    left.remove(after[0])
    return after[0]


def _find(setting: str, ref: ColumnRef, names: tuple[str, ...] | None, width: int, source: str) -> int:
    """Return the column's position: by its name where there is one, for names may be numbers, such as years.

    Raises UserError if the file has no such column.
    """
    index = index_of(ref)
    is_index = index is not None and -width <= index < width
    if names is not None and str(ref) in names:
        position = names.index(str(ref))
        if index is not None and is_index and index % width != position:
            log(
                f"{setting} is taken for the name of {shown_column(position, names)} of {source}, and not "
                f"for the index of {shown_column(index % width, names)}."
            )
        return position
    if index is not None:
        if is_index:
            return index % width
        hint = " If its first record is a header, set csv_header=true." if names is None else ""
        raise UserError(
            f"{setting}: {source} has {_columns(width)}, so an index is one of {-width} to {width - 1}.{hint}"
        )
    if names is None:
        raise UserError(
            f"{setting}: {source} has no header with names. Give the column's index, counted from 0, or set "
            "csv_header=true if its first record is a header."
        )
    if width == 1 and (mark := next((mark for mark in ";|\t" if mark in names[0]), None)):
        raise UserError(
            f"{setting}: {source} was read with the delimiter ',' and has one column, {short(names[0])!r}: "
            f"set csv_delimiter={'tab' if mark == '\t' else mark}, and write decimals with a point."
        )
    nearest = get_close_matches(str(ref), names, 1, 0.0)[0]
    raise UserError(f"{setting}: {source} has no column of this name; the nearest is {short(nearest)!r}.")


def _columns(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"


def _list(words: list[str]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more
