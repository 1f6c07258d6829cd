"""Columns of categories: words, or whole numbers read as words, as dictionary columns of Arrow.

XGBoost takes categories as strings only (Arrow's, from 3.1 on), keeps them in the model and re-codes by them
what it is to predict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

CATEGORY = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of categories in a batch."""

WHOLE_NUMBER = re.compile(r"-?[0-9]+")
WHOLE_VALUED = re.compile(r"-?[0-9]+(\.0*)?")
TRUTH = {
    **dict.fromkeys(("True", "TRUE", "true"), "True"),
    **dict.fromkeys(("False", "FALSE", "false"), "False"),
}
"""Truth values as Python, R, Excel and Spark write them, and as pandas and Python call them."""

COMPLEMENTS = str.maketrans("0123456789", "9876543210")


def trimmed(column: pa.DictionaryArray, missing: Collection[str]) -> pa.DictionaryArray:
    """Return a column of text without the spaces around its words; those of `missing` are no value."""
    words = pc.utf8_trim_whitespace(column.dictionary)
    words = pc.if_else(pc.is_in(words, pa.array(sorted(missing))), pa.scalar(None, pa.string()), words)
    return pc.take(words, column.indices).dictionary_encode().cast(CATEGORY)


def as_categories(column: pa.Array) -> pa.DictionaryArray:
    """Return a column of strings, whole numbers or booleans, or a dictionary of such, as categories.

    Booleans are called as pandas and Python call them.

    Raises pyarrow.ArrowInvalid for a number that is not whole.
    """
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = column.dictionary
    if pa.types.is_boolean(words.type):
        words = pc.if_else(words, "True", "False")
    if pa.types.is_floating(words.type):
        words = pc.if_else(pc.is_nan(words), pa.scalar(None, words.type), words).cast(pa.int64())
    return pc.take(words.cast(pa.string()), column.indices).dictionary_encode().cast(CATEGORY)


def used(column: pa.ChunkedArray) -> frozenset[str]:
    """Return the categories that occur in a column: its dictionary may hold more."""
    found: set[str] = set()
    for chunk in column.chunks:
        words = chunk.dictionary.take(pc.unique(chunk.indices).drop_null())
        found.update(words.drop_null().to_pylist())
    return frozenset(found)


def settled(words: Iterable[str]) -> tuple[str, ...]:
    """Return the categories that the words of all rows stand for, in the order of their codes.

    Whole numbers are one category in whatever way they are written, and so are truth values: pandas writes
    some whole numbers as 1.0, and others write TRUE or true. Where any word is another, as among versions
    (1.0, 1.1), each spelling is a category.
    """
    words = list(words)
    return _ordered(dict.fromkeys(map(_form_of(words), words)))


@dataclass(frozen=True)
class Coding:
    """The codes of a feature's categories, which are `settled`."""

    categories: tuple[str, ...]

    def coded(self, column: pa.ChunkedArray) -> pa.DictionaryArray:
        """Return a column with these codes; any other category becomes missing."""
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # it had no chunk
            column = pa.array([], CATEGORY)
        words = [None if word is None else self._form(word) for word in column.dictionary.to_pylist()]
        codes = pc.index_in(pa.array(words, pa.string()), self._array)
        return pa.DictionaryArray.from_arrays(pc.take(codes, column.indices), self._array)

    def unseen(self, words: Iterable[str]) -> frozenset[str]:
        """Return those of `words` that are none of the categories."""
        return frozenset(word for word in words if self._form(word) not in self._known)

    @cached_property
    def _form(self) -> Callable[[str], str]:
        return _form_of(self.categories)

    @cached_property
    def _array(self) -> pa.Array:
        return pa.array(self.categories, pa.string())

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.categories)


def _form_of(words: Collection[str]) -> Callable[[str], str]:
    """Return what makes a category of a word that stands among `words`."""
    if all(map(WHOLE_VALUED.fullmatch, words)):
        return _as_whole
    if all(word in TRUTH for word in words):
        return _as_truth
    return str


def _as_whole(word: str) -> str:
    return word.split(".", 1)[0] if WHOLE_VALUED.fullmatch(word) else word


def _as_truth(word: str) -> str:
    return TRUTH.get(word, word)


def _ordered(categories: Iterable[str]) -> tuple[str, ...]:
    """Return categories in the order of their codes: that of the numbers if all are whole numbers."""
    categories = list(categories)
    if all(WHOLE_NUMBER.fullmatch(word) for word in categories):
        return tuple(sorted(categories, key=_number))
    return tuple(sorted(categories))


def _number(word: str) -> tuple[int, str, str]:
    """Return what sorts words as the whole numbers they are; Python makes no integer of 5,000 digits."""
    digits = word.removeprefix("-").lstrip("0")
    if digits and word.startswith("-"):
        return -len(digits), digits.translate(COMPLEMENTS), word
    return len(digits), digits, word
