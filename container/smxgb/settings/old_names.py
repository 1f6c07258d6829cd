"""Old names and values of settings: what old jobs still set, and what takes its place today."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from smxgb.literals import number, whole_number
from smxgb.settings.given import Given
from smxgb.settings.hyperparameters import OBSOLETE
from smxgb.settings.spellings import is_unset, listed, switch, word
from smxgb.settings.value_types import Fraction, Switch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.errors import Mistakes

_GPU = re.compile(r"(gpu|cuda)(:[0-9]+)?")


@dataclass(frozen=True)
class _Range:
    """What AWS's image allowed of an obsolete setting: a type that pydantic checks, and its words."""

    type: TypeAdapter[object]
    allowed: str


def _range(type_: Any, allowed: str) -> _Range:
    return _Range(TypeAdapter(type_), allowed)


_TRUTH = _range(Switch, "true or false")
_INTEGER = _range(Annotated[int, BeforeValidator(whole_number)], "a whole number")
RANGES: Mapping[str, _Range] = {
    "predictor": _range(
        Annotated[Literal["auto", "cpu_predictor", "gpu_predictor"], BeforeValidator(word)],
        "one of auto, cpu_predictor, gpu_predictor",
    ),
    "sketch_eps": _range(
        Annotated[float, Field(gt=0, lt=1), BeforeValidator(number)], "a number above 0 and below 1"
    ),
    "dsplit": _range(Annotated[Literal["row", "col"], BeforeValidator(word)], "one of row, col"),
    "lambda_bias": _range(Fraction, "a number from 0 to 1"),
    "prob_buffer_row": _range(Fraction, "a number from 0 to 1"),
    "deterministic_histogram": _TRUTH,
    "single_precision_histogram": _TRUTH,
    "silent": _TRUTH,
    "gpu_id": _INTEGER,
    "n_gpus": _INTEGER,
}
"""The ranges of obsolete settings, those of AWS's image where it had the setting."""


def modernise(settings: dict[str, Given], obsolete: Mapping[str, object], mistakes: Mistakes) -> list[str]:
    """Turn old names and values into those of today, and return a line for the log for each.

    `settings` are changed in place; `obsolete` holds what a job gives under the names of `OBSOLETE`. Values
    that were never allowed are noted as `mistakes`.
    """
    kept = {name: value for name, value in obsolete.items() if is_unset(value) or _is_allowed(name, value)}
    for name in obsolete.keys() - kept.keys():
        given = Given.of(name, obsolete[name])
        mistakes.add(f"{given.shown} is not allowed: it must be {RANGES[name].allowed}, or be left out.")
    return [
        *_old_objective(settings),
        *_old_device(settings),
        *_old_updater(settings),
        *(_take_over(settings, name, Given.of(name, value)) for name, value in kept.items()),
    ]


def _is_allowed(name: str, value: object) -> bool:
    try:
        RANGES[name].type.validate_python(value)
    except ValidationError:
        return False
    return True


def _old_objective(settings: dict[str, Given]) -> Iterator[str]:
    if _word(settings, "objective") == "reg:linear":
        settings["objective"] = settings["objective"].as_value("reg:squarederror")
        yield "objective=reg:linear is an old name: taken as reg:squarederror."
    if "objective" not in settings and "num_class" in settings:
        settings["objective"] = settings["num_class"].as_value("multi:softmax")
        yield "objective is not set: num_class makes it multi:softmax, as in XGBoost itself."


def _old_device(settings: dict[str, Given]) -> Iterator[str]:
    if _word(settings, "tree_method") == "gpu_hist":
        method = settings["tree_method"]
        settings["tree_method"] = method.as_value("hist")
        settings.setdefault("device", method.as_value("cuda"))
        device = _word(settings, "device")
        yield f"tree_method=gpu_hist is an old name: taken as tree_method=hist with device={device}."
    device = _word(settings, "device")
    if device not in {"cpu", "cuda"} and _GPU.fullmatch(device):
        settings["device"] = settings["device"].as_value("cuda")
        yield f"device={device} is taken as device=cuda: the container gives each worker its GPU."


def _old_updater(settings: dict[str, Given]) -> Iterator[str]:
    updaters = listed(settings["updater"].value) if "updater" in settings else None
    names = [word(name) for name in updaters or ()]
    if "sync" in names:
        kept = [name for name in names if name != "sync"]
        updater = settings.pop("updater")
        if kept:
            settings["updater"] = updater.as_value(kept)
        yield "updater=sync is left out: XGBoost removed it."


def _take_over(settings: dict[str, Given], name: str, given: Given) -> str:
    """Set what took an obsolete name's place, unless the job sets it; return the line for the log."""
    replacement = _replacement(name, given.value)
    if replacement is None:
        return f"{given.shown} is ignored: {OBSOLETE[name]}."
    successor, value = replacement
    if successor in settings:
        return f"{given.shown} is ignored: {successor}={_word(settings, successor)} holds."
    settings[successor] = given.as_value(value)
    return f"{given.shown} is an old name: taken as {successor}={value}."


def _replacement(name: str, value: object) -> tuple[str, object] | None:
    """Return the setting that took an obsolete name's place, and its value; None if nothing did."""
    silent, count = switch(value), whole_number(value)
    if name == "silent" and isinstance(silent, bool):
        return "verbosity", 0 if silent else 1
    if name == "gpu_id" and isinstance(count, int):
        return "device", "cuda" if count >= 0 else "cpu"
    if name == "n_gpus" and isinstance(count, int):
        return "device", "cuda" if count != 0 else "cpu"
    return None


def _word(settings: Mapping[str, Given], name: str) -> str:
    return str(word(settings[name].value)) if name in settings else ""
