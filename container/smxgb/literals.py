"""Literals: quoted texts and numbers as SageMaker's SDKs and their users write them in hyperparameters.json.

SDK v2 writes `str(value)`, or JSON of it when a script is given; SDK v3 writes JSON. What reads a setting
reads it with these functions, so that a number means the same to the supervisors and to the work.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_QUOTE_LAYERS = 3


def loaded[T](text: str, kind: type[T], otherwise: Any) -> Any:
    """Return the value of a JSON or Python literal if it is of the kind, else `otherwise`.

    `literal_eval` reads literals only: nothing in the text is run.
    """
    for load in (json.loads, ast.literal_eval):
        try:
            value = load(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if isinstance(value, kind):
            return value
    return otherwise


def unquoted(text: str) -> str:
    """Return a text without the blanks and layers of quotes around it."""
    text = text.strip()
    for _ in range(_QUOTE_LAYERS):
        if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":  # noqa: PLR2004 (a pair of quotes)
            break
        text = loaded(text, str, text[1:-1]).strip()
    return text


def bare(value: object) -> object:
    """Return a text without blanks and quotes around it, and any other value as it is."""
    return unquoted(value) if isinstance(value, str) else value


def number_of(text: str) -> int | float | None:
    """Return the number that a text without quotes writes in decimal digits, None if it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if _INTEGER.fullmatch(text) else float(text)


def number(value: object) -> object:
    """Return the number that a text writes; any other value without quotes."""
    text = bare(value)
    found = number_of(text) if isinstance(text, str) else None
    return text if found is None else found


def whole_number(value: object) -> object:
    """Return the whole number that 45, 45.0 or 4.5e1 writes; any other value as `number` does."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() else found


def integer(value: object) -> object:
    """Return the integer that a text writes without point and exponent; any other value without quotes."""
    text = bare(value)
    return int(text) if isinstance(text, str) and _INTEGER.fullmatch(text) else text
