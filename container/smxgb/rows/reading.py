"""The settings that say how the rows of a file are to be read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from smxgb.rows.categories import CATEGORY
from smxgb.rows.label_coder import LabelCoder
from smxgb.rows.roles import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from smxgb.job import Channels, Name
    from smxgb.rows.roles import RoleName
    from smxgb.settings import ColumnRef, Hyperparameters


@dataclass(frozen=True)
class Partition:
    """A column that the names of a channel's folders hold, as y=0 (Hive's layout), and one of its values.

    `varies` says that there are others, so that the rows can't be told apart without the column.
    """

    channel: Name
    column: str
    value: str
    varies: bool


@dataclass(frozen=True)
class ReadingSettings:
    """How the rows of a file are to be read.

    `columns` has the column of each role that a setting names; without one for the label or its lower bound,
    the label is the first column that has no other role. `csv_weights` puts the instance weight into the CSV
    column with index 1, as AWS's image does. `delimiter` is "auto" or one character. `dictionaries` says that
    dictionary columns of Parquet hold categories, as those of `categorical` do. `partitions` are columns that
    files may lack: `drop` may name them all the same. `class_labels` is ("auto",), or all classes; with it,
    `coder` gives the labels of one channel their codes.
    """

    columns: Mapping[RoleName, ColumnRef] = field(default_factory=dict)
    drop: tuple[ColumnRef, ...] = ()
    categorical: tuple[ColumnRef, ...] = ()
    dictionaries: bool = False
    csv_weights: bool = False
    header: Literal["auto", "true", "false"] = "auto"
    delimiter: str = "auto"
    invalid_label: Literal["error", "drop"] = "error"
    infinity: Literal["error", "missing"] = "error"
    indexing: Literal["auto", "0", "1"] = "auto"
    partitions: tuple[Partition, ...] = ()
    class_labels: tuple[str, ...] = ()
    coder: LabelCoder | None = field(default=None, compare=False)

    def dtype(self, role: RoleName) -> pa.DataType:
        """Return the type of a role's column of a table: labels that get codes are words."""
        return CATEGORY if role == "label" and self.coder else ROLES[role].dtype

    def with_coder(self) -> ReadingSettings:
        """Return the settings for reading one channel, whose labels get codes if they are `class_labels`."""
        return replace(self, coder=LabelCoder()) if self.class_labels else self

    @property
    def absent(self) -> set[str]:
        """The columns that no file must hold to be dropped."""
        return {partition.column for partition in self.partitions}


def reading_settings(settings: Hyperparameters, channels: Channels) -> ReadingSettings:
    """Return what a job's settings, and the names of its channels' folders, say about reading rows."""
    named = {role.name: getattr(settings, role.setting) for role in ROLES.values()}
    return ReadingSettings(
        columns={name: ref for name, ref in named.items() if ref is not None},
        drop=settings.drop_columns,
        categorical=settings.categorical_columns,
        dictionaries=settings.enable_categorical,
        csv_weights=settings.csv_weights,
        header=settings.csv_header,
        delimiter=settings.csv_delimiter,
        invalid_label=settings.invalid_label,
        infinity=settings.infinity,
        indexing=settings.libsvm_indexing,
        class_labels=settings.class_labels,
        partitions=tuple(
            Partition(channel.name, column, min(values), len(values) > 1)
            for channel in channels
            for column, values in channel.partitions.items()
        ),
    )
