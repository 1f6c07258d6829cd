"""The job: everything the configuration says, checked, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type ColumnRef = str | int
"""A column by name, or by its index in the file before any column is dropped; negative counts from the end."""


@dataclass(frozen=True)
class DataSettings:
    """How the rows of a file are to be read.

    `label` None is the first column that has no other role. `csv_weights` puts the instance weight into the CSV
    column with index 1, as AWS's image does. `delimiter` is "auto" or one character.
    """

    label: ColumnRef | None = None
    weight: ColumnRef | None = None
    group: ColumnRef | None = None
    lower: ColumnRef | None = None
    upper: ColumnRef | None = None
    drop: tuple[ColumnRef, ...] = ()
    csv_weights: bool = False
    header: Literal["auto", "true", "false"] = "auto"
    delimiter: str = "auto"
    invalid_label: Literal["error", "drop"] = "error"
    infinity: Literal["error", "missing"] = "error"
