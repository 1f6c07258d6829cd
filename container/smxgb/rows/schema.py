"""What a file has, what files declare of the features, and what the features of the model are."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads it, and the roles
from dataclasses import dataclass, field
from functools import cached_property

from smxgb.rows.roles import RoleName  # noqa: TC001


@dataclass(frozen=True)
class Layout:
    """Where the columns of a table are. Positions count from 0, over all columns of the file.

    `columns` are the names in the file's order, None if it has none. `features` are positions in the order of
    the schema; those of them that hold categories are in `categorical` too. `row_numbers` are columns that
    are left out for they count the rows, which they must do in every file. Those of `letters` hold truth
    values that are written T and F. In those of `unrounded`, float32 takes nothing from the first values:
    they are no large whole numbers.
    """

    columns: tuple[str, ...] | None
    width: int
    features: tuple[int, ...]
    roles: tuple[tuple[RoleName, int], ...]
    categorical: tuple[int, ...] = ()
    row_numbers: tuple[int, ...] = ()
    letters: tuple[int, ...] = ()
    unrounded: frozenset[int] = field(default=frozenset(), compare=False)

    def name(self, position: int) -> str | None:
        """Return the column's name, if the file has names."""
        return None if self.columns is None else self.columns[position]


@dataclass(frozen=True)
class Declared:
    """What the first file of a channel declares of the features, before all rows were seen.

    A table has a `layout`, dense records have a `width`: how many features each has. Sparse rows have
    neither: how many features there are is known when all rows were seen.
    """

    layout: Layout | None = None
    width: int | None = None

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features in order, invented ones if the file has none; None for sparse rows."""
        if self.layout is None:
            return None if self.width is None else Schema.unnamed(self.width).names
        columns = self.layout.columns
        if columns is None:
            return Schema.unnamed(len(self.layout.features)).names
        return tuple(columns[position] for position in self.layout.features)

    @property
    def invented(self) -> bool:
        """Whether the names are of our making."""
        return self.layout is None or self.layout.columns is None

    @property
    def categorical(self) -> tuple[str, ...]:
        """The names of the features of categories."""
        if self.layout is None:
            return ()
        named = zip(self.names or (), self.layout.features, strict=True)
        return tuple(name for name, position in named if position in self.layout.categorical)

    @property
    def schema(self) -> Schema | None:
        """The features without their categories; None for sparse rows."""
        if self.names is None:
            return None
        return Schema(self.names, self.invented, layout=self.layout)


@dataclass(frozen=True)
class Schema:
    """The features of a model, in order: every batch of every channel has exactly these columns.

    `invented` says that the files name no columns, so that the names are `f0`, `f1`, ... of our making.
    `layout` is the one of the first file of `train`, None if that is no table. `first_index` is what libsvm
    files call the first feature, None if there are no such files. `categories` has the name of each feature
    of categories, with these in the order of their codes. `classes` are the labels that are words, in the
    order of theirs.
    """

    names: tuple[str, ...]
    invented: bool
    layout: Layout | None = field(default=None, compare=False)
    first_index: int | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

    @classmethod
    def unnamed(cls, count: int) -> Schema:
        """Return the schema of `count` features of files that name no columns."""
        return cls(tuple(f"f{index}" for index in range(count)), invented=True)
