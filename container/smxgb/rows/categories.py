"""Columns of categories: words, or whole numbers read as words, as dictionary columns of Arrow.

XGBoost takes categories as strings only (Arrow's, from 3.1 on), keeps them in the model and re-codes by them
what it is to predict.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CATEGORY = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of categories in a batch."""

WHOLE_NUMBER = re.compile(r"-?[0-9]+")
COMPLEMENTS = str.maketrans("0123456789", "9876543210")


def spelled(words: pa.Array) -> pa.Array:
    """Return words of a text with whole numbers and truth values as `as_categories` has them.

    pandas writes some numbers as 1.0, and others write TRUE or true.
    """
    words = pc.replace_substring_regex(words, r"^(-?\d+)\.0*$", r"\1")
    words = pc.replace_substring_regex(words, r"^(TRUE|true)$", "True")
    return pc.replace_substring_regex(words, r"^(FALSE|false)$", "False")


def trimmed(column: pa.DictionaryArray, missing: Collection[str]) -> pa.DictionaryArray:
    """Return a column of text without the spaces around its words; those of `missing` are no value."""
    words = spelled(pc.utf8_trim_whitespace(column.dictionary))
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


def ordered(categories: Iterable[str]) -> tuple[str, ...]:
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


def recoded(column: pa.ChunkedArray, categories: pa.Array) -> pa.DictionaryArray:
    """Return a column with the codes of `categories`; any other category becomes missing."""
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # it had no chunk
        column = pa.array([], CATEGORY)
    codes = pc.index_in(column.dictionary, categories)
    return pa.DictionaryArray.from_arrays(pc.take(codes, column.indices), categories)
