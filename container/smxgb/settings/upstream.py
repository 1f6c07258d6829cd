"""XGBoost's side of the settings: the parameters that it gets, its names and defaults, and its complaints."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.literals import unquoted, whole_number
from smxgb.settings.hyperparameters import TRAITS
from smxgb.settings.spellings import listed, mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.settings.hyperparameters import Hyperparameters

INTERNAL = frozenset(
    {
        "fail_on_invalid_gpu_id",
        "max_row_perbatch",
        "metrics",
        "name",
        "num_feature",
        "num_target",
        "num_trees",
        "rng_state",
        "specified_updater",
        "updater_seq",
        "version",
    }
)
"""Names in XGBoost's configuration that it accepts as parameters, but sets itself."""

_OBJECTIVES: tuple[Mapping[str, object], ...] = (
    {"objective": "reg:pseudohubererror"},
    {"objective": "reg:tweedie"},
    {"objective": "reg:quantileerror", "quantile_alpha": 0.5},
    {"objective": "reg:expectileerror", "expectile_alpha": 0.5},
    {"objective": "rank:ndcg"},
    {"objective": "survival:aft"},
)
"""The objectives that have parameters of their own."""

_RESOLVED_LATER = frozenset({"monotone_constraints", "interaction_constraints", "device", "nthread"})
_PREFIX = re.compile(r"^\[[0-9:]+\] \S+?:[0-9]+: (?:Check failed: .*?(?:\(.*?\) )?: )?")


def declared_params(settings: Hyperparameters) -> dict[str, object]:
    """Return the declared parameters of XGBoost that a job sets, by XGBoost's names and in its forms."""
    return {
        name: _upstream_form(name, value)
        for name, value in settings.model_dump(by_alias=True, exclude_none=True).items()
        if TRAITS[name].use == "xgboost" and name not in _RESOLVED_LATER
    }


def _upstream_form(name: str, value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if name == "updater" and isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, tuple):
        return json.dumps(value)
    return value


def passed_value(value: object) -> object:
    """Return the value of an undeclared parameter as XGBoost reads it: `10.0` as 10, lists as JSON."""
    if isinstance(value, str):
        text = unquoted(value)
        if text[:1] in {"[", "(", "{"}:
            items = mapping(text) or listed(text)
            return json.dumps(items) if items is not None else text
        return whole_number(text)
    if isinstance(value, bool):
        return int(value)
    return json.dumps(value) if isinstance(value, list | dict) else value


@dataclass(frozen=True)
class Answer:
    """XGBoost's answer to some parameters: its error's first sentence, and the names that it did not use."""

    complaint: str | None
    unused: frozenset[str]


def ask(params: Mapping[str, object]) -> Answer:
    """Return XGBoost's answer to `params`, by which a booster of two rows is configured."""
    complaint, warned, _ = _configure(params)
    return Answer(
        complaint, frozenset(name for name in params if any(f'"{name}"' in text for text in warned))
    )


def known_names() -> frozenset[str]:
    """Return the parameters that XGBoost's own configurations hold, without the internal ones."""
    names: set[str] = set()
    for booster in ("gbtree", "dart", "gblinear"):
        names |= _configured_names({"booster": booster})
    for params in _OBJECTIVES:
        names |= _configured_names(params)
    return frozenset(names - INTERNAL)


def defaults() -> dict[str, str]:
    """Return the defaults of XGBoost's parameters, as its configuration writes them.

    Where a default depends on the booster, it is that of gbtree.
    """
    import xgboost as xgb  # noqa: PLC0415 - as in _configure

    found = {"verbosity": str(xgb.get_config()["verbosity"])}
    for params in ({}, {"booster": "dart"}, *_OBJECTIVES):
        _, _, configuration = _configure(params)
        found = dict(_values(configuration["learner"])) | found
    return found


def takes(name: str) -> bool:
    """Return whether XGBoost takes a parameter that its configuration does not show, with some booster."""
    linear = {"booster": "gblinear", "updater": "coord_descent"}
    return name not in INTERNAL and any(
        name not in ask({**others, name: 1}).unused for others in ({"booster": "gbtree"}, linear)
    )


def _configured_names(params: Mapping[str, object]) -> set[str]:
    _, _, configuration = _configure(params)
    return {name for name, _ in _values(configuration["learner"])}


def _values(configuration: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in configuration.items():
        if isinstance(value, dict):
            yield from _values(value)
        else:
            yield name, str(value)


def _configure(params: Mapping[str, object]) -> tuple[str | None, list[str], dict[str, dict[str, object]]]:
    # Imported here because only a job with an undeclared parameter needs it at this point.
    import numpy as np  # noqa: PLC0415
    import xgboost as xgb  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as warned, xgb.config_context(verbosity=1):
        warnings.simplefilter("always")
        try:
            matrix = xgb.DMatrix(np.eye(2, dtype=np.float32), label=[0, 1], nthread=1)
            configuration = json.loads(xgb.Booster({**params, "nthread": 1}, cache=[matrix]).save_config())
        except (xgb.core.XGBoostError, ValueError, TypeError) as error:
            return _first_sentence(str(error)), [], {"learner": {}}
    return None, [str(warning.message) for warning in warned], configuration


def _first_sentence(text: str) -> str:
    line = _PREFIX.sub("", text.strip().split("\n", 1)[0])
    return re.split(r"(?<=[a-z)])\. ", line, maxsplit=1)[0].rstrip(". ")
