"""From the texts of hyperparameters.json to values: every spelling that the SDKs and their users write.

Each function returns a value that it does not understand as it is, for the type check to refuse.
"""

from __future__ import annotations

from smxgb.literals import bare, integer, loaded, unquoted

_NULLS = {"", "null", "none"}
_TRUE = {"true", "1", "1.0", "yes", "y", "on", "t"}
_FALSE = {"false", "0", "0.0", "no", "n", "off", "f"}
_BRACKETS = {"[": "]", "(": ")"}
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


def is_unset(value: object) -> bool:
    """Return whether a value sets nothing: None, blanks, "null" or "None"."""
    return value is None or (isinstance(value, str) and unquoted(value).lower() in _NULLS)


def switch(value: object) -> object:
    """Return True or False for a word that means it."""
    text = str(bare(value)).lower()
    return True if text in _TRUE else False if text in _FALSE else value


def word(value: object) -> object:
    """Return a word in lower case and without quotes; a number or a truth value as its word."""
    return str(bare(value)).lower() if isinstance(value, str | int | float) else value


def word_or_switch(value: object) -> object:
    """Return "true" or "false" for a word that means it, any other in lower case and without quotes."""
    return word(switch(value))


def listed(value: object) -> list[object] | None:
    """Return the items of a list in any spelling (JSON, Python, between commas), or None if it is none."""
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None if isinstance(value, dict) else [value]
    text = unquoted(value)
    if text[:1] == "{":
        return None
    if text[:1] in _BRACKETS:
        items = loaded(text, object, None)
        if isinstance(items, list | tuple):
            return list(items)
        if text[-1] != _BRACKETS[text[0]] or any(bracket in text[1:-1] for bracket in "[]()"):
            return None
        text = text[1:-1]
    return [item for item in (unquoted(part) for part in text.split(",")) if item]


def items(value: object) -> object:
    """Return the items of a list in any spelling."""
    found = listed(value)
    return value if found is None else tuple(found)


def column(value: object) -> object:
    """Return an index that is written as Python writes it, else a name; a list of one column is that one."""
    text = bare(value)
    found = loaded(text, object, None) if isinstance(text, str) and text[:1] in _BRACKETS else text
    if isinstance(found, list | tuple):
        return column(found[0]) if len(found) == 1 else list(found)
    index = integer(text)
    return index if str(index) == str(text) else text


def mapping(value: object) -> dict[str, object] | None:
    """Return a JSON or Python mapping by name, or None if it is none."""
    found = loaded(unquoted(value), object, None) if isinstance(value, str) else value
    return {str(key): item for key, item in found.items()} if isinstance(found, dict) else None


def by_name(value: object) -> object:
    """Return a mapping by name in any spelling."""
    found = mapping(value)
    return value if found is None else found


def delimiter(value: object) -> object:
    """Return the character between values, which may be a blank, by itself or by its name; None if unset."""
    if not isinstance(value, str):
        return value
    text = value.strip('"') if len(value) > 1 else value
    name = text.strip().lower()
    return text if len(text) == 1 else None if name in _NULLS else _DELIMITERS.get(name, name)
