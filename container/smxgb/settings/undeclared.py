"""Undeclared names: parameters of XGBoost that are not in the declared table, or mistakes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from smxgb.settings import upstream
from smxgb.settings.given import Given
from smxgb.settings.hyperparameters import NAMES
from smxgb.settings.objectives import kind_of
from smxgb.settings.spellings import is_unset
from smxgb.wording import short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.errors import Mistakes
    from smxgb.settings.hyperparameters import Hyperparameters

_FOR_COORD_DESCENT = frozenset({"random", "greedy", "thrifty"})
_FOREIGN = {
    "n_estimators": "num_round",
    "num_boost_round": "num_round",
    "num_iterations": "num_round",
    "metric": "eval_metric",
    "metrics": "eval_metric",
    "label": "label_column",
    "target": "label_column",
}
"""What other interfaces of XGBoost, or other libraries, call a setting."""


def passed_through(
    undeclared: Mapping[str, object], settings: Hyperparameters, mistakes: Mistakes
) -> tuple[dict[str, object], list[str]]:
    """Return the parameters that XGBoost takes, in its forms, and lines for the log; the others are noted."""
    if not undeclared:
        return {}, []
    known = upstream.known_names()
    extra: dict[str, object] = {}
    for name, value in undeclared.items():
        if name not in known and ("\0" in name or not upstream.takes(name)):
            # XGBoost would read a name only up to its NUL.
            # Its value stays out of log and failure file: it may be a password.
            mistakes.add(f"{short(name)} is not a hyperparameter: {_cure(name, known)}")
        elif "\0" in str(value):
            mistakes.add(f"{Given.of(name, value).shown} is not allowed: it holds a NUL.")
        elif not is_unset(value):
            extra[name] = upstream.passed_value(value)
    notes = []
    others = _declared(settings) if extra else {}
    for name, value in extra.items():
        if name == "feature_selector" and value in _FOR_COORD_DESCENT and _is_shotgun(settings):
            mistakes.add(f"{name}={value} needs updater=coord_descent: set that too.")
            continue
        answer = upstream.ask({**others, name: value})
        if answer.complaint:
            shown = Given.of(name, undeclared[name]).shown
            mistakes.add(f"{shown} is not allowed: XGBoost says: {answer.complaint}.")
        elif name in answer.unused:
            notes.append(f"{name} has no effect with the job's booster and objective.")
    return extra, notes


def _declared(settings: Hyperparameters) -> dict[str, object]:
    """Return the declared parameters that undeclared ones are tried with: none, if XGBoost refuses them."""
    params = upstream.declared_params(settings)
    if kind_of(settings.objective) == "multi-class":
        params.setdefault("num_class", 2)
    # A declared parameter that XGBoost refuses is a mistake of its own, which another check reports.
    return {} if upstream.ask(params).complaint else params


def _is_shotgun(settings: Hyperparameters) -> bool:
    return settings.booster == "gblinear" and "coord_descent" not in (settings.updater or ())


def _cure(name: str, known: frozenset[str]) -> str:
    if name in upstream.INTERNAL:
        return "XGBoost sets it itself; leave it out."
    names = sorted({*NAMES, *known})
    near = _FOREIGN.get(name.lower()) or next(iter(get_close_matches(name.lower(), names, n=1)), None)
    return f"did you mean {near}?" if near else "leave it out; `smxgb describe` lists all."
