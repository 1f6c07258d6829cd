"""From the texts of hyperparameters.json to values: every spelling that the SDKs and their users write.

SDK v2 writes `str(value)`, or JSON of it when a script is given; SDK v3 writes JSON. A text that stands for
no value of the wanted type is returned as it is, for the type check to refuse.
"""

from __future__ import annotations

import ast
import json
import re
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_NULLS = {"", "null", "none"}
_TRUE = {"true", "1", "1.0", "yes", "y", "on", "t"}
_FALSE = {"false", "0", "0.0", "no", "n", "off", "f"}
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_QUOTE_LAYERS = 3
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


def is_unset(value: object) -> bool:
    """Return whether a value says that nothing is set: None, nothing but blanks, null, None."""
    return value is None or (isinstance(value, str) and unquoted(value).lower() in _NULLS)


def decode(value: object, annotation: Any) -> object:
    """Return `value` in the type of a field's annotation, or, if it is none of that type, as it came."""
    if get_origin(annotation) is Annotated:
        return decode(value, get_args(annotation)[0])
    if get_origin(annotation) in {UnionType, Union}:
        members = [member for member in get_args(annotation) if member is not type(None)]
        return decode(value, members[0]) if len(members) == 1 else _one_of(value, members)
    if get_origin(annotation) is Literal:
        return _choice(value, get_args(annotation))
    if get_origin(annotation) is tuple:
        items = listed(value)
        return value if items is None else tuple(decode(item, get_args(annotation)[0]) for item in items)
    if isinstance(value, str):
        value = unquoted(value)
    return _SCALARS[annotation](value)


def unquoted(text: str) -> str:
    """Return a text without the blanks and layers of quotes around it."""
    text = text.strip()
    for _ in range(_QUOTE_LAYERS):
        if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":  # noqa: PLR2004 (a pair of quotes)
            break
        text = _loaded(text, str, text[1:-1]).strip()
    return text


def listed(value: object) -> list[object] | None:
    """Return the items of a list in any spelling (JSON, Python, between commas), or None if it is none."""
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None if isinstance(value, dict) else [value]
    text = unquoted(value)
    if text[:1] == "{":
        return None
    if text[:1] in {"[", "("}:
        loaded = _loaded(text, object, None)
        if isinstance(loaded, list | tuple):
            return list(loaded)
        if text[-1] != _BRACKETS[text[0]] or any(bracket in text[1:-1] for bracket in "[]()"):
            return None
        text = text[1:-1]
    return [item for item in (unquoted(part) for part in text.split(",")) if item]


def mapping(value: object) -> dict[str, object] | None:
    """Return a JSON or Python mapping by name, or None if it is none."""
    loaded = _loaded(unquoted(value), object, None) if isinstance(value, str) else value
    return {str(key): item for key, item in loaded.items()} if isinstance(loaded, dict) else None


def delimiter(value: object) -> object:
    """Return the character between values, which may be a blank, by itself or by its name; None if unset."""
    if not isinstance(value, str):
        return value
    bare = value.strip('"') if len(value) > 1 else value
    word = bare.strip().lower()
    return bare if len(bare) == 1 else None if word in _NULLS else _DELIMITERS.get(word, word)


def _one_of(value: object, members: list[Any]) -> object:
    """Decode what may be of two types: a mapping or a list, a name or an index."""
    if set(members) == {str, int}:
        return _column(value)
    by_name = mapping(value)
    if by_name is not None:
        item_type = get_args(next(member for member in members if get_origin(member) is dict))[1]
        return {name: decode(item, item_type) for name, item in by_name.items()}
    return decode(value, next(member for member in members if get_origin(member) is tuple))


def _column(value: object) -> object:
    if isinstance(value, str):
        text = unquoted(value)
        return int(text) if _INTEGER.fullmatch(text) else text
    return value


def _number(value: object) -> object:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value) if _INTEGER.fullmatch(value) else float(value)
    return value


def _whole(value: object) -> object:
    number = _number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _switch(value: object) -> object:
    word = str(value).lower()
    return True if word in _TRUE else False if word in _FALSE else value


def _choice(value: object, choices: tuple[Any, ...]) -> object:
    if isinstance(choices[0], int):
        return (
            value if isinstance(value, bool) else _whole(unquoted(value) if isinstance(value, str) else value)
        )
    word = unquoted(value).lower() if isinstance(value, str) else str(value).lower()
    if "true" in choices and word not in choices:
        switched = _switch(word)
        word = str(switched).lower()
    return word if word in choices else value


def _text(value: object) -> object:
    return value


_SCALARS = {int: _whole, float: _number, bool: _switch, str: _text}


def _loaded[T](text: str, kind: type[T], otherwise: Any) -> Any:
    """Return what JSON or a Python literal in `text` stands for if it is of the kind, else `otherwise`.

    `literal_eval` reads literals only: nothing in the text is run.
    """
    for load in (json.loads, ast.literal_eval):
        try:
            loaded = load(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if isinstance(loaded, kind):
            return loaded
    return otherwise
