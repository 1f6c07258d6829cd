"""The label coder: codes for labels that are words, as they come while a channel is read."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

NUMBER = re.compile(r"[+-]?(\d{1,300}\.?\d*|\.\d+)(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)


class LabelCoder:
    """Gives the labels of one channel codes 0, 1, 2, ... in the order in which they come, in any pass."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._rows: list[int] = []
        self._lock = Lock()

    @property
    def words(self) -> tuple[str, ...]:
        """The labels in the order of their codes."""
        return tuple(self._codes)

    @property
    def rows(self) -> dict[str, int]:
        """The labels in the order of their codes, with how many rows had each in all passes until now."""
        return {word: self._rows[code] if code < len(self._rows) else 0 for word, code in self._codes.items()}

    def coded(self, column: pa.Array) -> pa.Array:
        """Return labels, words as a dictionary or numbers, as 32-bit floats that hold codes; null is NaN."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        is_short = pa.types.is_float32(column.type.value_type)
        words: list[str | None] = [None] * len(column.dictionary)
        # A dictionary may hold words that no row has, which are no classes.
        for index in column.indices.unique().drop_null().to_pylist():
            value = column.dictionary[index].as_py()
            words[index] = as_word(str(np.float32(value)) if is_short and value is not None else value)
        with self._lock:
            codes = [
                None if word is None else self._codes.setdefault(word, len(self._codes)) for word in words
            ]
        table = np.array([np.nan if code is None else code for code in [*codes, None]], np.float32)
        places = column.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        self._count(table[places])
        return pa.array(table[places])

    def _count(self, codes: npt.NDArray[np.float32]) -> None:
        found = np.bincount(codes[~np.isnan(codes)].astype(np.intp))
        with self._lock:
            self._rows += [0] * (len(found) - len(self._rows))
            for code, rows in enumerate(found.tolist()):
                self._rows[code] += rows


def as_word(value: object) -> str | None:
    """Return a label as a word without spaces around; what is a number has one spelling."""
    word = "" if value is None else str(value).strip()
    if NUMBER.fullmatch(word):
        number = float(word)
        return str(int(number)) if number.is_integer() else repr(number)
    return word if word and word != "nan" else None
