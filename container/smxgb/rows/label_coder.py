"""The label coder: codes for labels that are words, as they come while a channel is read."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa


class LabelCoder:
    """Gives the labels of one channel codes 0, 1, 2, ... in the order in which they come, in any pass."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._lock = Lock()

    @property
    def words(self) -> tuple[str, ...]:
        """The labels in the order of their codes."""
        return tuple(self._codes)

    def coded(self, column: pa.Array) -> pa.Array:
        """Return labels, words as a dictionary or numbers, as 32-bit floats that hold codes; null is NaN."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        words = [_word(value) for value in column.dictionary.to_pylist()]
        with self._lock:
            codes = [
                None if word is None else self._codes.setdefault(word, len(self._codes)) for word in words
            ]
        table = np.array([np.nan if code is None else code for code in [*codes, None]], np.float32)
        places = column.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        return pa.array(table[places])


def _word(value: object) -> str | None:
    """Return a label as a word; a float without a fraction is a whole number."""
    if isinstance(value, float):
        return None if np.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return None if value is None else str(value)
