"""Constraints on features: from the names and positions that users write to the positions for XGBoost."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING

from smxgb.errors import Mistakes
from smxgb.literals import integer
from smxgb.log import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.settings.hyperparameters import Hyperparameters
    from smxgb.settings.value_types import ColumnRef, Sign


def resolve_constraints(settings: Hyperparameters, feature_names: Sequence[str]) -> dict[str, object]:
    """Return the constraints of a job as XGBoost's parameters; positions count features, without the label.

    Raises UserError if a constraint is for a feature that does not exist.
    """
    mistakes = Mistakes()
    params: dict[str, object] = {}
    monotone = settings.monotone_constraints
    if monotone:
        params["monotone_constraints"] = _monotone(monotone, feature_names, mistakes)
    interaction = settings.interaction_constraints
    if interaction:
        groups = [[_position(ref, feature_names, mistakes) for ref in group] for group in interaction]
        params["interaction_constraints"] = json.dumps(groups)
    mistakes.raise_any()
    return params


def _monotone(
    directions: tuple[Sign, ...] | dict[str, Sign], feature_names: Sequence[str], mistakes: Mistakes
) -> str:
    count = len(feature_names)
    if isinstance(directions, dict):
        for name in directions:
            if name not in feature_names:
                mistakes.add(f"monotone_constraints: {_no_feature(name, feature_names)}")
        ordered: list[Sign] = [directions.get(name, 0) for name in feature_names]
    else:
        ordered = list(directions)
        if len(ordered) > count:
            mistakes.add(
                f"monotone_constraints has {len(ordered)} directions for {count} features: "
                "give one for each feature, without the label, or name the features."
            )
    return f"({','.join(map(str, ordered))})"


def _position(ref: ColumnRef, feature_names: Sequence[str], mistakes: Mistakes) -> int:
    index = integer(ref)
    named = feature_names[index] if isinstance(index, int) and 0 <= index < len(feature_names) else None
    # A header may give a number as a name to a feature: the name is meant where there is one.
    if str(ref) in feature_names:
        position = list(feature_names).index(str(ref))
        if named is not None and index != position:
            log(
                f"interaction_constraints: {ref} is taken for the name of feature {position}, not for the "
                f"position of {named!r}."
            )
        return position
    if isinstance(index, int):
        if named is not None:
            return index
        mistakes.add(
            f"interaction_constraints: there is no feature {ref}; "
            f"the {len(feature_names)} features count from 0 to {len(feature_names) - 1}, without the label."
        )
    else:
        mistakes.add(f"interaction_constraints: {_no_feature(str(ref), feature_names)}")
    return 0


def _no_feature(name: str, feature_names: Sequence[str]) -> str:
    near = get_close_matches(name, feature_names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the first are {', '.join(feature_names[:5])}."
    return f"there is no feature {name!r}; {hint}"
