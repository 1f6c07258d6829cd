"""From hyperparameters.json to the settings of a job, or to all that is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pydantic import ValidationError

from smxgb.errors import Mistakes
from smxgb.settings import consistency, upstream
from smxgb.settings.declaration import OBSOLETE, Hyperparameters, name_of, trait_of
from smxgb.settings.decoding import decode, delimiter, is_unset, unquoted
from smxgb.settings.description import allowed, choices
from smxgb.settings.metric_choice import choose_metrics
from smxgb.settings.objectives import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.settings.metrics import Metric

_SHOWN = 60
_GPU = re.compile(r"(gpu|cuda)(:[0-9]+)?")
_FOR_COORD_DESCENT = frozenset({"random", "greedy", "thrifty"})
_SCRIPT_MODE = "sagemaker_"
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


@dataclass(frozen=True)
class Parsed:
    """The settings of a job, and what follows from them alone.

    `extra` holds parameters of XGBoost that are not in the declared table, as XGBoost takes them. `metrics`
    is in the order of the log; `monitored` is one of them, watched by early stopping. `script_mode` holds the
    `sagemaker_*` keys as they came. `notes` are lines for the log. `shown` has each setting that the job
    gives, by field, as it gives it: `device` may stand there as gpu_id='0'.
    """

    settings: Hyperparameters
    extra: Mapping[str, object]
    metrics: tuple[Metric, ...]
    monitored: Metric
    notes: tuple[str, ...]
    script_mode: Mapping[str, object]
    shown: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass
class _Draft:
    """What is known of a job's settings while they are being read."""

    mistakes: Mistakes = field(default_factory=Mistakes)
    notes: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    obsolete: dict[str, object] = field(default_factory=dict)
    unknown: dict[str, object] = field(default_factory=dict)
    script_mode: dict[str, object] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)


def parse(raw: Mapping[str, object], mistakes: Mistakes | None = None) -> Parsed:
    """Return the settings that the content of hyperparameters.json stands for.

    Raises UserError with every mistake that can be found without a look at channels and data, unless
    `mistakes` is there to note them: settings that are wrong are then left out.
    """
    draft, by_name = _Draft(mistakes or Mistakes()), _fields_by_name()
    for name, value in raw.items():
        _sort(draft, by_name, name, value)
    _modernise(draft)
    settings = _checked(draft)
    _check_availability(draft, settings)
    for fields, text in consistency.conflicts(settings):
        if not fields & draft.bad:
            draft.mistakes.add(text)
    evaluation = choose_metrics(settings, draft.mistakes, objective_known="objective" not in draft.bad)
    extra = _passed_through(draft, settings)
    if mistakes is None:
        draft.mistakes.raise_any()
    notes = (*draft.notes, *evaluation.notes)
    return Parsed(
        settings, extra, evaluation.metrics, evaluation.monitored, notes, draft.script_mode, draft.shown
    )


def booster_params(parsed: Parsed) -> dict[str, object]:
    """Return what the job's settings mean for `xgboost.Booster`, by XGBoost's names.

    Not among them is what only the host or the data tell: device, nthread, an inferred num_class, and
    constraints (`resolve_constraints`); nor the metrics, which are asked for by themselves.

    `seed_per_iteration` is true unless the job says otherwise: random numbers then depend on the seed and the
    number of the round alone, so that a job resumed at any round grows the trees it would have grown anyway.
    """
    return {"seed_per_iteration": 1, **upstream.declared_params(parsed.settings), **parsed.extra}


def _fields_by_name() -> dict[str, str]:
    return {
        name: field_name
        for field_name in Hyperparameters.model_fields
        for name in (name_of(field_name), *trait_of(field_name).aliases)
    }


def _sort(draft: _Draft, by_name: Mapping[str, str], name: str, value: object) -> None:
    """Put one item of the file where it belongs."""
    if name.startswith(_SCRIPT_MODE):
        draft.script_mode[name] = value
    elif name in OBSOLETE:
        draft.obsolete[name] = value
    elif name not in by_name:
        draft.unknown[name] = value
    elif name == "csv_delimiter":
        if (character := delimiter(value)) is not None:
            _take(draft, name, name, value, character)
    elif not is_unset(value):
        field_name = by_name[name]
        annotation = Hyperparameters.model_fields[field_name].annotation
        _take(draft, field_name, name, value, decode(value, annotation))


def _take(draft: _Draft, field_name: str, name: str, value: object, decoded: object) -> None:
    shown = f"{name}={_shown(value)}"
    if field_name not in draft.values:
        draft.values[field_name], draft.shown[field_name] = decoded, shown
    elif draft.values[field_name] != decoded:
        draft.mistakes.add(
            f"{draft.shown[field_name]} and {shown} are two values of one setting: keep one of the two names."
        )


def _modernise(draft: _Draft) -> None:
    """Turn old names and values into those of today, with a line in the log for each."""
    values, notes = draft.values, draft.notes
    if _word(values.get("objective")) == "reg:linear":
        values["objective"] = "reg:squarederror"
        notes.append("objective=reg:linear is an old name: taken as reg:squarederror.")
    if "objective" not in values and "num_class" in values:
        values["objective"] = "multi:softmax"
        notes.append("objective is not set: num_class makes it multi:softmax, as in XGBoost itself.")
    if _word(values.get("tree_method")) == "gpu_hist":
        values["tree_method"] = "hist"
        draft.shown.setdefault("device", draft.shown["tree_method"])
        wanted = values.setdefault("device", "cuda")
        notes.append(f"tree_method=gpu_hist is an old name: taken as tree_method=hist with device={wanted}.")
    device = _word(values.get("device"))
    if device not in {"cpu", "cuda"} and _GPU.fullmatch(device):
        values["device"] = "cuda"
        notes.append(f"device={device} is taken as device=cuda: the container gives each worker its GPU.")
    updaters = values.get("updater")
    if isinstance(updaters, tuple) and "sync" in updaters:
        values["updater"] = tuple(name for name in updaters if name != "sync") or None
        notes.append("updater=sync is left out: XGBoost removed it.")
    for name, value in draft.obsolete.items():
        notes.append(_replaced(draft, name, value) or f"{name}={_shown(value)} is ignored: {OBSOLETE[name]}.")
    draft.values = {name: value for name, value in values.items() if value is not None}


def _replaced(draft: _Draft, name: str, value: object) -> str | None:
    """Set what took an obsolete name's place, unless the job sets it; return the line for the log."""
    values = draft.values
    successor: str
    replacement: object
    if name == "silent" and isinstance(silent := decode(value, bool), bool):
        successor, replacement = "verbosity", 0 if silent else 1
    elif name in {"gpu_id", "n_gpus"} and isinstance(number := decode(value, int), int):
        on_gpu = number >= 0 if name == "gpu_id" else number != 0
        successor, replacement = "device", "cuda" if on_gpu else "cpu"
    else:
        return None
    if successor in values:
        return f"{name}={_shown(value)} is ignored: {successor}={values[successor]} holds."
    values[successor], draft.shown[successor] = replacement, f"{name}={_shown(value)}"
    return f"{name}={_shown(value)} is an old name: taken as {successor}={replacement}."


def _checked(draft: _Draft) -> Hyperparameters:
    """Return the settings; those with a mistake are left out, after noting it."""
    by_alias = {name_of(field_name): value for field_name, value in draft.values.items()}
    try:
        return Hyperparameters.model_validate(by_alias)
    except ValidationError as error:
        wrong = {str(details["loc"][0]) for details in error.errors(include_url=False, include_input=False)}
    for field_name in Hyperparameters.model_fields:
        name = name_of(field_name)
        if name not in wrong:
            continue
        draft.bad.add(field_name)
        if by_alias.pop(name, None) is None:
            draft.mistakes.add(f"{name} is missing: set it to {allowed(field_name)}.")
        else:
            draft.mistakes.add(f"{draft.shown[field_name]} is not allowed: {_cure(draft, field_name)}")
    # A stand-in for the one setting that must be there, so that the rest can be checked too.
    return Hyperparameters.model_validate({"num_round": 1, **by_alias})


def _cure(draft: _Draft, field_name: str) -> str:
    value = draft.values[field_name]
    words = value if isinstance(value, tuple) else (value,)
    known = choices(field_name)
    wrong = next((word for word in words if isinstance(word, str) and word not in known), None)
    near = get_close_matches(wrong.lower(), known, n=1, cutoff=0.75) if wrong and known else []
    return f"did you mean {near[0]}?" if near else f"it must be {allowed(field_name)}."


def _check_availability(draft: _Draft, settings: Hyperparameters) -> None:
    for field_name in draft.values:
        if field_name in draft.bad or trait_of(field_name).use != "later":
            continue
        default = Hyperparameters.model_fields[field_name].default
        if getattr(settings, field_name) != default:
            shown = "unset" if default is None else "none" if default == () else str(default).lower()
            cure = f"leave it out (the default is {shown})"
            draft.mistakes.add(f"{draft.shown[field_name]} is not available in this version: {cure}.")


def _passed_through(draft: _Draft, settings: Hyperparameters) -> dict[str, object]:
    """Return the undeclared parameters that XGBoost takes, after noting the others."""
    if not draft.unknown:
        return {}
    known = upstream.known_names()
    extra: dict[str, object] = {}
    for name, value in draft.unknown.items():
        if name not in known and not upstream.takes(name):
            # Its value stays out of log and failure file: nobody knows what it is, maybe a password.
            draft.mistakes.add(f"{_shortened(name)} is not a hyperparameter: {_nearest(name, known)}")
        elif not is_unset(value):
            extra[name] = upstream.passed_value(value)
    if extra:
        _try_out(draft, settings, extra)
    return extra


def _try_out(draft: _Draft, settings: Hyperparameters, extra: dict[str, object]) -> None:
    declared = {"num_class": 2, **upstream.declared_params(settings)}
    if kind_of(settings.objective) != "multi-class":
        del declared["num_class"]
    if upstream.ask(declared).complaint:
        # Another setting stands in the way, and is reported by itself.
        declared = {}
    for name, value in extra.items():
        if name == "feature_selector" and value in _FOR_COORD_DESCENT and _is_shotgun(settings):
            draft.mistakes.add(f"{name}={value} needs updater=coord_descent: set that too.")
            continue
        answer = upstream.ask({**declared, name: value})
        if answer.complaint:
            shown = _shown(draft.unknown[name])
            draft.mistakes.add(f"{name}={shown} is not allowed: XGBoost says: {answer.complaint}.")
        elif name in answer.unused:
            draft.notes.append(f"{name} has no effect with the job's booster and objective.")


def _is_shotgun(settings: Hyperparameters) -> bool:
    return settings.booster == "gblinear" and "coord_descent" not in (settings.updater or ())


def _nearest(name: str, known: frozenset[str]) -> str:
    if name in upstream.INTERNAL:
        return "XGBoost sets it itself; leave it out."
    later = {name for name, field_name in _fields_by_name().items() if trait_of(field_name).use == "later"}
    names = sorted({*_fields_by_name(), *known} - later)
    near = _FOREIGN.get(name.lower()) or next(iter(get_close_matches(name.lower(), names, n=1)), None)
    return f"did you mean {near}?" if near else "leave it out; `smxgb describe` lists all."


def _word(value: object) -> str:
    return unquoted(value).lower() if isinstance(value, str) else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]}...{text[-1]}"


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN - 3]}..."
