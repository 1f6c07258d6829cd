"""The types of Parquet columns: which are numbers, and how they become 32-bit floats."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from smxgb.errors import Mistakes, UserError
from smxgb.log import notice
from smxgb.rows.categories import CATEGORY, as_categories
from smxgb.rows.readers.row_rules import EXACT, LISTED, whole_numbers
from smxgb.rows.roles import ROLES
from smxgb.wording import short, shown_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.schema import Layout

NUMERIC = (
    pa.types.is_floating,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_decimal,
    # A column in which every value is missing.
    pa.types.is_null,
)

CATEGORICAL = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_floating,  # whole numbers, some of them missing, as pandas writes them
    pa.types.is_null,
)

INVENTED_INDEX = re.compile(r"__index_level_\d+__")

type Columns = tuple[str, tuple[str, ...], tuple[pa.DataType, ...], Layout]
"""A file as messages show it, the names and types of its columns, and its layout."""


def check_types(files: Iterable[Columns], *, dictionaries: bool, codes_labels: bool) -> None:
    """Raise UserError with all columns of all files that can't be read as numbers.

    `dictionaries` says that those of `train`'s first file are categories already, `codes_labels` that labels
    may be words.
    """
    sources: dict[str, list[str]] = {}
    for source, names, types, layout in files:
        for text in _complaints(names, types, layout, dictionaries=dictionaries, codes_labels=codes_labels):
            sources.setdefault(text, []).append(source)
    if sources:
        raise UserError(*(f"{_some(found)}: {text}" for text, found in sources.items()))


def dictionaries(layout: Layout, names: tuple[str, ...], categories: frozenset[str]) -> Layout:
    """Return the layout with all features of `categories` as such."""
    found = (index for index in layout.features if names[index] in categories)
    return replace(layout, categorical=tuple(sorted({*layout.categorical, *found})))


def notice_numbers(
    layout: Layout, names: tuple[str, ...], types: tuple[pa.DataType, ...], found: frozenset[str], source: str
) -> None:
    """Say which features are read as numbers that pandas `found` to be categories."""
    numbers = [
        repr(short(names[index]))
        for index in layout.features
        if names[index] in found
        and index not in layout.categorical
        and _is_read(types[index], categorical=False)
    ]
    if numbers:
        notice(
            f"{source}: pandas has categories in "
            f"{', '.join(numbers[:LISTED])}{', ...' if len(numbers) > LISTED else ''}, which are read as "
            "numbers: set enable_categorical=true, or name them in categorical_columns."
        )


def categories(schema: pa.Schema, stored: Mapping[bytes, bytes]) -> frozenset[str]:
    """Return the names of the columns that were dictionaries when the file was written.

    Arrow restores dictionaries of words only: it reads those of numbers and truth values as these. Its own
    schema, among what the file `stored`, and pandas' metadata say what they were.
    """
    found = {column["name"] for column in _of_pandas(schema, "columns") if _is_category(column)}
    with suppress(KeyError, ValueError, pa.ArrowException):
        written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored[b"ARROW:schema"])))
        found.update(field.name for field in written if pa.types.is_dictionary(field.type))
    return frozenset(found.intersection(schema.names))


def _is_category(column: object) -> bool:
    return isinstance(column, dict) and column.get("pandas_type") == "categorical" and "name" in column


def rounded(labels: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rows whose labels are whole numbers that 64-bit floats don't tell apart."""
    if pa.types.is_decimal(labels.type) and labels.type.scale <= 0:
        labels = labels.cast(pa.float64(), safe=False)
    elif not pa.types.is_integer(labels.type):
        return np.zeros(0, np.int64)
    values = labels.fill_null(0).to_numpy()
    return np.flatnonzero((values > EXACT) | (values < -EXACT))


def converted(column: pa.Array, data_type: pa.DataType, source: str, shown_column: str) -> pa.Array:
    """Return a column as another numeric type, or as categories, nulls kept.

    Integers beyond 24 bits are rounded, as XGBoost itself would. A double that is too large becomes infinite,
    which the rules for rows then see. Raises UserError for a category that is a broken number.
    """
    if data_type == CATEGORY:
        try:
            return as_categories(column)
        except pa.ArrowInvalid:
            raise UserError(
                f"{source}, {shown_column}: it holds numbers that are not whole, so they are no categories. "
                "Write them as whole numbers or words, or save the column as numbers and leave it out of "
                "categorical_columns."
            ) from None
    if pa.types.is_integer(data_type) and pa.types.is_floating(column.type):
        return whole_numbers(column)
    if pa.types.is_decimal(column.type):
        # Arrow's own way from decimals to 32 bits is off in the last place of many values, as of 0.05.
        column = column.cast(pa.float64(), safe=False)
    return column if column.type == data_type else column.cast(data_type, safe=False)


def saved_index(schema: pa.Schema) -> frozenset[str]:
    """Return the names of an index of pandas, by the metadata that pandas writes into Parquet.

    A range of numbers is described there, and is no column. Other programs lose the metadata when they copy a
    table; then the names that pandas invents tell.
    """
    invented = frozenset(name for name in schema.names if INVENTED_INDEX.fullmatch(name))
    levels = _of_pandas(schema, "index_columns")
    ranges = {str(level["name"]) for level in levels if isinstance(level, dict) and level.get("name")}
    columns = {level for level in levels if isinstance(level, str)}
    return invented.union(ranges.difference(schema.names), columns)


def _of_pandas(schema: pa.Schema, key: str) -> list[Any]:
    """Return a list of the metadata that pandas writes into Parquet, empty where there is none."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))[key]
    except (ValueError, KeyError, TypeError):
        return []
    return found if isinstance(found, list) else []


def check_index(settings: ReadingSettings, index: frozenset[str], labels: Sequence[str], source: str) -> None:
    """Raise UserError if settings give a role to what pandas saved as an index, which is left out.

    `labels` are those of its columns that may be the label, which the job must then name.
    """
    mistakes = Mistakes()
    possible = [name for name in labels if name not in settings.drop]
    if possible and not settings.columns.keys() & {"label", "lower"}:
        mistakes.add(
            f"{source} has {possible[0]!r} as the index of a table of pandas, which is left out and may be "
            "the label: name the label in label_column, and if it is the index, make it a column, with "
            "reset_index() before to_parquet()."
        )
    for role in (role for name, role in ROLES.items() if str(settings.columns.get(name)) in index):
        name = settings.columns[role.name]
        mistakes.add(
            f"{role.setting}={name}: {source} has {name!r} as the index of a table of pandas, which is left "
            "out: make it a column, with reset_index() before to_parquet()."
        )
    mistakes.raise_any()


def is_float(data_type: pa.DataType, *, short: bool) -> bool:
    """Tell whether a column of this type holds floats, those of 32 bits or fewer if it is to be `short`."""
    return bool(pa.types.is_floating(data_type) and not (short and pa.types.is_float64(data_type)))


def may_be_label(data_type: pa.DataType) -> bool:
    """Tell whether a column of this type could be the label."""
    return any(is_type(data_type) for is_type in NUMERIC)


def _complaints(
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    layout: Layout,
    *,
    dictionaries: bool,
    codes_labels: bool,
) -> list[str]:
    texts = []
    used = sorted({*layout.features, *(position for _, position in layout.roles)})
    words = {
        *layout.categorical,
        *(place for role, place in layout.roles if role == "label" and codes_labels),
    }
    bad = [position for position in used if not _is_read(types[position], position in words)]
    label = dict(layout.roles).get("label")
    if label in bad and label is not None:
        bad.remove(label)
        texts.append(
            f"the label, {shown_column(label, names)}, is of type {types[label]}: set class_labels=auto if "
            "its words name classes, or name another column with label_column."
        )
    if bad:
        listed = ", ".join(f"{names[position]!r} ({types[position]})" for position in bad)
        or_set = "" if dictionaries else " (or set enable_categorical=true for all dictionaries)"
        dropped = ",".join(names[position] for position in bad)
        texts.append(
            f"columns that hold no numbers: {listed}. Integers, floats, decimals and booleans are read. "
            f"Encode the others as numbers, name those of words in categorical_columns{or_set}, or leave "
            f"them out with drop_columns={dropped}."
        )
    group = dict(layout.roles).get("group")
    if group is not None and group not in bad and not _numbers_groups(types[group]):
        texts.append(
            f"the group, {shown_column(group, names)}, is of type {types[group]}: number the groups with "
            "integers."
        )
    return texts


def _numbers_groups(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def _is_read(data_type: pa.DataType, categorical: bool) -> bool:  # noqa: FBT001 - both are what is asked
    if not categorical:
        return any(is_type(data_type) for is_type in NUMERIC)
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    return any(is_type(data_type) for is_type in CATEGORICAL)


def _some(sources: list[str]) -> str:
    count = len(sources) - 1
    return sources[0] + (f" and {count} more file{'s' if count > 1 else ''}" if count else "")
