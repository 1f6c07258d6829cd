"""Row numbers: columns without a name that count the rows, as pandas and R save the index of a table.

They are no label and no feature. pandas calls such a column `Unnamed: 0` when it reads it, and writes that
name when the table is saved once more, beside the new index.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*", re.ASCII)

COUNT = (
    "does not count on from the row before, as the column without a name does where the file begins",
    "Save the table without its index (index=False), or leave the column out with drop_columns.",
    "the cell is empty, in a column without a name that counts the rows where the file begins",
)
"""What is said of a row number that does not go on like the others, the cure, and what is said of none."""


def unnamed(names: tuple[str, ...] | None) -> list[int]:
    """Return the positions of the first columns, up to one that has a name of its own."""
    positions = []
    for position, name in enumerate(names or ()):
        if not UNNAMED.fullmatch(name):
            break
        positions.append(position)
    return positions


def counts_on(numbers: Sequence[int]) -> bool:
    """Tell whether each whole number is one more than that before."""
    array = np.asarray(numbers, np.int64)
    return not (array < 0).any() and bool((np.diff(array) == 1).all())


def breaks(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for each number whether it goes on from none before: parts of a table begin anew at 0 or 1.

    A column of 0 and 1 does not count.
    """
    broken = numbers < 0
    anew = (numbers[1:] >> 1 == 0) & (numbers[:-1] > 1)
    broken[1:] |= (np.diff(numbers) != 1) & ~anew
    return broken
