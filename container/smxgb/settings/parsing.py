"""From hyperparameters.json to the settings of a job, or to all that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from smxgb.errors import Mistakes
from smxgb.settings import consistency, upstream
from smxgb.settings.description import allowed, choices
from smxgb.settings.given import sort_items
from smxgb.settings.hyperparameters import TRAITS, Hyperparameters
from smxgb.settings.metric_choice import choose_metrics
from smxgb.settings.old_names import modernise
from smxgb.settings.undeclared import passed_through

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.settings.given import Given
    from smxgb.settings.metrics import Metric


@dataclass(frozen=True)
class Parsed:
    """The settings of a job, and what follows from them alone.

    `extra` holds parameters of XGBoost that are not in the declared table, as XGBoost takes them. `metrics`
    is in the order of the log; early stopping watches `monitored`, one of them. `script_mode` holds the
    `sagemaker_*` keys as they came. `notes` are lines for the log. `shown` has each setting that the job
    gives, by its name, as the job gives it: `device` may stand there as gpu_id='0'.
    """

    settings: Hyperparameters
    extra: Mapping[str, object]
    metrics: tuple[Metric, ...]
    monitored: Metric
    notes: tuple[str, ...]
    script_mode: Mapping[str, object]
    shown: Mapping[str, str] = field(default_factory=dict, compare=False)


def parse(raw: Mapping[str, object], mistakes: Mistakes | None = None, *, has_model: bool = False) -> Parsed:
    """Return the settings that the content of hyperparameters.json stands for.

    `has_model` says that training goes on from a model.

    Raises UserError with every mistake that can be found without a look at channels and data, unless
    `mistakes` is there to note them: settings that are wrong are then left out.
    """
    found = Mistakes() if mistakes is None else mistakes
    items = sort_items(raw, found)
    old = modernise(items.settings, items.obsolete, found)
    settings, wrong = _checked(items.settings, found)
    for names, text in consistency.conflicts(settings, has_model=has_model):
        if not names & wrong:
            found.add(text)
    choice = choose_metrics(settings, found, objective_known="objective" not in wrong)
    extra, unused = passed_through(items.undeclared, settings, found)
    if mistakes is None:
        found.raise_any()
    return Parsed(
        settings,
        extra,
        choice.metrics,
        choice.monitored,
        (*old, *unused, *choice.notes),
        items.script_mode,
        {name: given.shown for name, given in items.settings.items()},
    )


def booster_params(parsed: Parsed) -> dict[str, object]:
    """Return what the job's settings mean for `xgboost.Booster`, by XGBoost's names.

    Not among them is what only the host or the data tell: device, nthread, an inferred num_class, and
    constraints (`resolve_constraints`). Metrics are not among them either.

    `seed_per_iteration` is true unless the job says otherwise: random numbers then depend on the seed and the
    number of the round alone, so that a job that is resumed at any round grows the same trees.
    """
    return {"seed_per_iteration": 1, **upstream.declared_params(parsed.settings), **parsed.extra}


def shaping_settings(parsed: Parsed) -> dict[str, object]:
    """Return the settings that shape the model, by their names."""
    settings = parsed.settings.model_dump(by_alias=True, exclude_none=True)
    shaping = {name: value for name, value in settings.items() if not TRAITS[name].free}
    if parsed.settings.early_stopping_rounds:
        shaping["early stopping's metric"] = parsed.monitored.name
    return {**shaping, **parsed.extra}


def _checked(given: Mapping[str, Given], mistakes: Mistakes) -> tuple[Hyperparameters, set[str]]:
    """Return the settings without those that are wrong, and the names of these, after noting why."""
    values = {name: setting.value for name, setting in given.items()}
    try:
        return Hyperparameters.model_validate(values), set()
    except ValidationError as error:
        wrong: dict[str, Any] = {}
        for details in error.errors(include_url=False):
            wrong.setdefault(str(details["loc"][0]), details["input"])
    for name in (name for name in TRAITS if name in wrong):
        if name in given:
            mistakes.add(f"{given[name].shown} is not allowed: {_cure(name, wrong[name])}")
            del values[name]
        else:
            mistakes.add(f"{name} is missing: set it to {allowed(name)}.")
    # num_round must be there: a number in its place lets the other settings be checked all the same.
    return Hyperparameters.model_validate({"num_round": 1, **values}), set(wrong)


def _cure(name: str, value: object) -> str:
    """Return what to do about a value that is not allowed: a setting's, or that of an item of its list."""
    near = get_close_matches(value, choices(name), n=1, cutoff=0.75) if isinstance(value, str) else []
    return f"did you mean {near[0]}?" if near else f"it must be {allowed(name)}."
