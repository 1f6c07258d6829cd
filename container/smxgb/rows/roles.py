"""Roles: what a column that is not a feature is for, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    type Mask = npt.NDArray[np.bool_]
    type Columns = Mapping[RoleName, pa.Array]

type RoleName = Literal["label", "weight", "group", "lower", "upper"]
type RoleArray = npt.NDArray[Any]
"""The values of a role, shape (rows,): int64 for groups, else float32."""


@dataclass(frozen=True)
class Role:
    """One role.

    Attributes:
        name: What batches and other code call it.
        setting: The hyperparameter that names its column.
        word: How the line of the log begins that says which column it is.
        noun: What messages call one value.
        dtype: The type of its values.
        rule: What a value must be, as messages say it.
        cure: What to do about values that break the rule.
        invalid: Returns the mask of the values that break the rule, given the columns of all roles.
        xgboost: What `xgboost.DMatrix` calls it, None for groups, which a matrix is given when it is whole.
    """

    name: RoleName
    setting: str
    word: str
    noun: str
    dtype: pa.DataType
    rule: str
    cure: str
    invalid: Callable[[Columns], Mask]
    xgboost: str | None

    @property
    def complaint(self) -> str:
        """What messages say behind a value that breaks the rule."""
        return f"is not {'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}: {self.rule}"

    @property
    def empty_complaint(self) -> str:
        """What messages say where there is no value."""
        return f"the {self.noun} is empty: {self.rule}"


def _label(columns: Columns) -> Mask:
    mask: Mask = ~np.isfinite(_numbers(columns["label"]))
    return mask


def _weight(columns: Columns) -> Mask:
    values = _numbers(columns["weight"])
    return ~(np.isfinite(values) & (values >= 0))


def _group(columns: Columns) -> Mask:
    mask: Mask = columns["group"].is_null().to_numpy(zero_copy_only=False)
    return mask


def _lower(columns: Columns) -> Mask:
    # Bounds are times: XGBoost takes their logarithm, and any number below 0 for no bound.
    values = _numbers(columns["lower"])
    return np.isnan(values) | np.isposinf(values) | ((values < 0) & np.isfinite(values))


def _upper(columns: Columns) -> Mask:
    values = _numbers(columns["upper"])
    mask: Mask = ~(values > 0)
    if "lower" in columns:
        mask |= values < _numbers(columns["lower"])
    return mask


def _numbers(column: pa.Array) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = column.to_numpy(zero_copy_only=False)
    return values


CORRECT = "Correct these rows."

ROLES: Mapping[RoleName, Role] = {
    role.name: role
    for role in (
        Role(
            "label",
            "label_column",
            "Label",
            "label",
            pa.float32(),
            "a finite number is needed",
            "Correct these rows (words as classes: class_labels=auto), leave them out with "
            "invalid_label=drop, or "
            "name another column with label_column.",
            _label,
            "label",
        ),
        Role(
            "weight",
            "weight_column",
            "Weights",
            "weight",
            pa.float32(),
            "a finite number, 0 or more, is needed",
            CORRECT,
            _weight,
            "weight",
        ),
        Role(
            "group",
            "group_column",
            "Groups",
            "group",
            pa.int64(),
            "an integer is needed",
            "Number the groups.",
            _group,
            None,
        ),
        Role(
            "lower",
            "label_lower_column",
            "Lower bounds",
            "lower bound",
            pa.float32(),
            "a number, 0 or more, or -inf is needed",
            CORRECT,
            _lower,
            "label_lower_bound",
        ),
        Role(
            "upper",
            "label_upper_column",
            "Upper bounds",
            "upper bound",
            pa.float32(),
            "a number above 0 and not below the lower bound, or inf, is needed",
            CORRECT,
            _upper,
            "label_upper_bound",
        ),
    )
}
"""Every role, in the order in which columns of a batch stand."""
