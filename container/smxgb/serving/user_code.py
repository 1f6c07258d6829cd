"""Users' inference code: the functions of a script that load a model, read requests, predict and answer.

The names, arguments and defaults are those of SageMaker's inference toolkit: `model_fn(model_dir)`, and
`input_fn(body, content_type)`, `predict_fn(data, model)`, `output_fn(prediction, accept)`, or instead of
these three `transform_fn(model, body, content_type, accept)`.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost as xgb

from smxgb.errors import UserError
from smxgb.log import log
from smxgb.overlay import Overlay
from smxgb.rows import read_body
from smxgb.serving.answers import SCORE
from smxgb.serving.model import as_model, load_folder
from smxgb.serving.responses import FORMS, choose
from smxgb.serving.service import Request, Response, guarded, input_form, refusal
from smxgb.submitted import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from smxgb.serving.endpoint import Endpoint

FUNCTIONS = ("model_fn", "input_fn", "predict_fn", "output_fn", "transform_fn")
TEXT = ("text/", "json", "csv", "libsvm")
"""What is in the content types of bodies that a user's function gets as text, as from SageMaker's toolkit."""


class _UnsupportedError(Exception):
    """The content type, or what is accepted, is one that the defaults do not know."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True)
class UserCode:
    """Answers with a user's functions; those that the script lacks are the defaults."""

    model: Any
    functions: Mapping[str, Callable[..., Any]]
    endpoint: Endpoint

    def is_quick(self, size: int) -> bool:  # noqa: ARG002 - nobody knows what the user's code does
        """Tell that a request is answered in another thread."""
        return False

    def answer(self, request: Request) -> Response:
        """Return what the user's functions answer."""
        return guarded(self._answer, request)

    def _answer(self, request: Request) -> Response:
        accept = request.accept if request.accept not in {"", "*/*"} else self.endpoint.accept
        content_type = request.content_type.partition(";")[0].strip()
        body = _as_given(request.data(), content_type)
        try:
            if "transform_fn" in self.functions:
                found = self.functions["transform_fn"](self.model, body, content_type, accept)
            else:
                found = self._in_steps(body, content_type, accept, request)
        except _UnsupportedError as error:
            return refusal(error.status, error.text, request)
        except UserError as error:
            return refusal(415, " ".join(error.mistakes), request)
        return _response(found, accept)

    def _in_steps(self, body: Any, content_type: str, accept: str, request: Request) -> Any:
        if "input_fn" in self.functions:
            data = self.functions["input_fn"](body, content_type)
        else:
            data = _matrix(self.model, request)
        predict: Callable[..., Any] = self.functions.get("predict_fn", _predict)
        prediction = predict(data, self.model)
        if "output_fn" in self.functions:
            return self.functions["output_fn"](prediction, accept)
        return _written(prediction, accept, self.endpoint.accept)


def load_user_code(endpoint: Endpoint, environ: Mapping[str, str]) -> UserCode:
    """Return the user's functions, with the model that they load.

    Raises:
        UserError: If the script is not there, or lacks `model_fn` where the folder holds no model of XGBoost.
    """
    folder = _folder(endpoint)
    script = folder / str(endpoint.program)
    if not script.is_file():
        raise UserError(f"SAGEMAKER_PROGRAM={endpoint.program}: {folder} holds no such file.")
    _install(folder / "requirements.txt", environ)
    functions = _functions(_imported(script))
    steps = {"input_fn", "predict_fn", "output_fn"} & functions.keys()
    if "transform_fn" in functions and steps:
        names = ", ".join(sorted(steps))
        raise UserError(f"{script.name} has transform_fn and {names}: keep one or the others.")
    if "model_fn" in functions:
        model = functions["model_fn"](str(endpoint.models))
    else:
        log(f"{script.name} has no model_fn: the model is the one of XGBoost in {endpoint.models}.")
        model = load_folder(endpoint.models, ensemble=False).first.booster
    return UserCode(model, functions, endpoint)


def _folder(endpoint: Endpoint) -> Path:
    """Return the folder of the user's code: the model's folder `code`, or what the environment names."""
    if not endpoint.submitted:
        return endpoint.models / "code"
    folder = Path(tempfile.mkdtemp(prefix="smxgb-code-"))
    return fetch(endpoint.submitted, folder / "code", "SAGEMAKER_SUBMIT_DIRECTORY")


def _install(requirements: Path, environ: Mapping[str, str]) -> None:
    """Install the user's requirements into an overlay whose packages come last: they replace none of ours.

    Raises UserError or PlatformError if that fails.
    """
    if not requirements.is_file():
        return
    overlay = Overlay.make(Path(tempfile.mkdtemp(prefix="smxgb-packages-")))
    overlay.install(
        ["-r", requirements.name], str(requirements), environ, requirements.parent, isolated=False
    )
    sys.path.append(str(overlay.packages))


def _imported(script: Path) -> ModuleType:
    """Run the script as a module; it may import what stands beside it."""
    sys.path.insert(0, str(script.parent))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    if spec is None or spec.loader is None:
        raise UserError(f"SAGEMAKER_PROGRAM={script.name} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    spec.loader.exec_module(module)
    return module


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    found = {name: getattr(module, name, None) for name in FUNCTIONS}
    return {name: function for name, function in found.items() if isfunction(function)}


def _as_given(data: bytes, content_type: str) -> str | bytes:
    if any(word in content_type.lower() for word in TEXT):
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data
    return data


def _matrix(model: Any, request: Request) -> xgb.DMatrix:
    """Return the rows of a request as the matrix that the default `predict_fn` takes."""
    booster = model.get_booster() if isinstance(model, xgb.XGBModel) else model
    if not isinstance(booster, xgb.Booster):
        kind = type(model).__name__
        raise UserError(f"The script needs an input_fn: its model is a {kind}, not one of XGBoost.")
    form, label_first = input_form(request)
    if form is None:
        raise _UnsupportedError(415, f"The content type {request.content_type!r} is not supported.")
    signature = as_model(booster.copy(), "the model").signature
    parts = list(read_body(request.body, request.size, form, signature, label_first=label_first))
    rows = parts[0] if len(parts) == 1 else np.concatenate([_dense(part) for part in parts])
    return xgb.DMatrix(rows, feature_names=booster.feature_names, feature_types=booster.feature_types)


def _dense(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part
    filled = np.full(part.shape, np.nan, np.float32)
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    filled[rows, part.indices] = part.data
    return filled


def _predict(data: Any, model: Any) -> Any:
    return model.predict(data)


def _written(prediction: Any, accept: str, default: str) -> tuple[bytes, str]:
    form = choose(accept, default, FORMS)
    if form is None:
        raise _UnsupportedError(406, f"Accept: {accept} is not one of {', '.join(FORMS)}.")
    return b"".join(form.parts([{SCORE: np.asarray(prediction)}])), form.content_type


def _response(found: Any, accept: str) -> Response:
    """Return what a user's function returned: a body, one with its content type, or a response of Flask."""
    if hasattr(found, "get_data") and hasattr(found, "status_code"):
        kind = getattr(found, "content_type", None) or accept
        return Response(found.status_code, found.get_data(), kind)
    body, content_type = found if isinstance(found, tuple) else (found, accept)
    return Response(200, body if isinstance(body, bytes) else str(body).encode(), content_type)
