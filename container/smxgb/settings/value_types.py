"""The types of settings: what is allowed, and how it is decoded from a text.

The bounds of a type come first, then what decodes a value before they are checked. `WithJsonSchema` has a
sentence of its own, "allowed", where the JSON schema that pydantic makes of a type is not enough for one.
"""
# No `from __future__ import annotations` here: pydantic reads the types at once, without evaluating texts.

from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from smxgb.limits import PORTS, RESTARTS, SECONDS
from smxgb.literals import bare, number, whole_number
from smxgb.settings.spellings import by_name, column, delimiter, items, switch, word, word_or_switch

ColumnRef = str | int
"""A column by name, or by its index in the file before any is dropped; negative counts from the end.

A name may be a number too: 4 is the column of that name where there is one, and "04" is an index elsewhere.
"""

Sign = Literal[-1, 0, 1]

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_FLOAT32 = 3.4028234e38

_T = TypeVar("_T")
WORD = BeforeValidator(word)
_WHOLE = BeforeValidator(whole_number)
_FLOAT = BeforeValidator(number)
Text = Annotated[str, BeforeValidator(bare)]
ClassLabel = Annotated[
    str, BeforeValidator(lambda given: str(given) if isinstance(given, int | float) else given)
]
"""A label of a class: a word, or a number as it is written."""
Switch = Annotated[bool, BeforeValidator(switch)]
AutoOrSwitch = Annotated[Literal["auto", "true", "false"], BeforeValidator(word_or_switch)]
ListOf = Annotated[tuple[_T, ...], BeforeValidator(items)]

Count = Annotated[int, Field(ge=0, le=_INT32), _WHOLE]
Positive = Annotated[int, Field(ge=1, le=_INT32), _WHOLE]
AtLeastTwo = Annotated[int, Field(ge=2, le=_INT32), _WHOLE]
Verbosity = Annotated[int, Field(ge=0, le=3), _WHOLE]
Seed = Annotated[int, Field(ge=-_INT64, le=_INT64), _WHOLE]
Port = Annotated[int, Field(ge=PORTS[0], le=PORTS[-1]), _WHOLE]
Restarts = Annotated[int, Field(ge=RESTARTS[0], le=RESTARTS[-1]), _WHOLE]
Seconds = Annotated[int, Field(ge=SECONDS[0], le=SECONDS[-1]), _WHOLE]
Fraction = Annotated[float, Field(ge=0, le=1), _FLOAT]
Share = Annotated[float, Field(gt=0, le=1), _FLOAT]
NonNegative = Annotated[float, Field(ge=0, le=_FLOAT32), _FLOAT]
AboveZero = Annotated[float, Field(gt=0, le=_FLOAT32), _FLOAT]
Number = Annotated[float, Field(ge=-_FLOAT32, le=_FLOAT32), _FLOAT]
TweediePower = Annotated[float, Field(gt=1, lt=2), _FLOAT]

Column = Annotated[
    ColumnRef,
    BeforeValidator(column),
    WithJsonSchema({"allowed": "a column's name, or its index (negative: from the end)"}),
]
Delimiter = Annotated[
    str,
    Field(pattern=r"""^(auto|[^\w"'.+\-\r\n])$"""),
    BeforeValidator(delimiter),
    WithJsonSchema({"allowed": "auto, tab, or one character that is no letter, digit, quote, dot or sign"}),
]
_Sign = Annotated[Sign, _WHOLE]
Directions = Annotated[
    ListOf[_Sign] | dict[str, _Sign],
    BeforeValidator(by_name),
    WithJsonSchema({"allowed": '-1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}'}),
]
Groups = Annotated[
    ListOf[ListOf[Column]],
    WithJsonSchema(
        {"allowed": 'groups of features by position or name, as [[0,1],[2,3]] or [["age","height"]]'}
    ),
]

Updater = Annotated[
    Literal[
        "grow_colmaker",
        "grow_histmaker",
        "grow_quantile_histmaker",
        "refresh",
        "prune",
        "shotgun",
        "coord_descent",
    ],
    WORD,
]
