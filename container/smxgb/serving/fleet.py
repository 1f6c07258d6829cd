"""The fleet of a multi-model endpoint: models that requests load, use and unload.

Requests and responses are those of SageMaker's multi-model containers; texts are those of AWS's image.
"""

from __future__ import annotations

import ctypes
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from smxgb.errors import UserError
from smxgb.log import log
from smxgb.machine import memory_available
from smxgb.serving.model import Ensemble, load_folder
from smxgb.serving.responses import MULTI_MODEL_FORMS
from smxgb.serving.service import Predictions, Request, Response, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from smxgb.serving.endpoint import Endpoint

PAGE = 100
"""Models of a page of the list."""

LOADED = 3
"""Bytes of memory that each byte of a model's file takes while it is loaded, at most."""

RESERVE = 32 << 20
"""Bytes of memory that stay free for requests."""


@dataclass
class _Registered:
    """A model that was loaded by a request. `models` is None after its memory was needed for another one."""

    url: str
    size: int
    models: Ensemble | None = None
    loading: Lock = field(default_factory=Lock)


class Fleet:
    """The registered models, the least recently used first.

    `free` tells how many bytes of memory are free. Models whose memory is needed for another one are loaded
    again when they are used.
    """

    def __init__(
        self, endpoint: Endpoint, pool: Executor | None, free: Callable[[], int] = memory_available
    ) -> None:
        self._endpoint = endpoint
        self._pool = pool
        self._free = free
        self._models: OrderedDict[str, _Registered] = OrderedDict()
        self._lock = Lock()

    @property
    def none(self) -> FleetService:
        """What answers a request that names no model."""
        return FleetService(self, "")

    def service(self, name: str) -> FleetService:
        """Return what answers with the model of this name."""
        return FleetService(self, name)

    def load(self, body: bytes) -> Response:
        """Register the model that a request names, and load it."""
        try:
            asked = json.loads(body)
            name, url = str(asked["model_name"]), str(asked["url"])
        except (ValueError, TypeError, KeyError):
            return _said(400, 'The body must be JSON: {"model_name": "...", "url": "..."}.')
        with self._lock:
            if name in self._models:
                return _said(409, f"Model {name} is already registered.")
            registered = _Registered(url, _size(Path(url)))
            self._models[name] = registered
        try:
            self._loaded(registered)
        except (UserError, OSError, MemoryError) as error:
            with self._lock:
                self._models.pop(name, None)
            if isinstance(error, MemoryError):
                return _said(507, f"Model {name} does not fit into memory.")
            text = " ".join(error.mistakes) if isinstance(error, UserError) else str(error)
            return _said(400, f"Model {name} can't be loaded: {text}")
        return _said(200, "Workers scaled")

    def unload(self, name: str) -> Response:
        """Forget a model."""
        with self._lock:
            if self._models.pop(name, None) is None:
                return _not_found(name)
        _return_memory()
        return _said(200, f'Model "{name}" unregistered')

    def described(self, name: str) -> Response:
        """Return what a model is called, and where it is."""
        with self._lock:
            registered = self._models.get(name)
        return _not_found(name) if registered is None else _json(200, _entry(name, registered))

    def listed(self, query: str) -> Response:
        """Return a page of the registered models; the query may name the page and its size."""
        asked = parse_qs(query)
        with self._lock:
            models = sorted(self._models.items())
        try:
            start = int(asked.get("next_page_token", ["0"])[0])
            size = int(asked.get("limit", [str(PAGE)])[0])
        except ValueError:
            return _said(400, "limit and next_page_token are whole numbers.")
        start, size = max(0, start), max(1, size)
        page: dict[str, object] = {
            "models": [_entry(name, each) for name, each in models[start : start + size]]
        }
        if start + size < len(models):
            page["nextPageToken"] = str(start + size)
        return _json(200, page)

    def answer(self, name: str, request: Request) -> Response:
        """Return the predictions of the model of this name."""
        with self._lock:
            registered = self._models.get(name)
            if registered is not None:
                self._models.move_to_end(name)
        if registered is None:
            return _not_found(name)
        try:
            models = self._loaded(registered)
        except MemoryError:
            return refusal(507, f"Model {name} does not fit into memory.", request)
        except (UserError, OSError) as error:
            return refusal(500, f"Model {name} can't be loaded: {error}", request)
        return Predictions(models, self._endpoint, MULTI_MODEL_FORMS, self._pool).answer(request)

    def _loaded(self, registered: _Registered) -> Ensemble:
        """Return a model, loaded again if it must be. Raises MemoryError if it does not fit."""
        with registered.loading:
            models = registered.models
            if models is None:
                self._make_room(registered)
                models = load_folder(Path(registered.url), ensemble=self._endpoint.ensemble)
                registered.models = models
            return models

    def _make_room(self, wanted: _Registered) -> None:
        """Let go of the least recently used models until there is memory for another one."""
        while self._free() < LOADED * wanted.size + RESERVE:
            with self._lock:
                others = (item for item in self._models.items() if item[1].models and item[1] is not wanted)
                name, oldest = next(others, ("", None))
                if oldest is None:
                    raise MemoryError
                oldest.models = None
            log(f"Model {name} was let go of, for memory was short.")
            _return_memory()


@dataclass(frozen=True)
class FleetService:
    """Answers with one model of a fleet."""

    fleet: Fleet
    name: str

    def is_quick(self, size: int) -> bool:  # noqa: ARG002 - the model may have to be loaded
        """Tell that a request is answered in another thread."""
        return False

    def answer(self, request: Request) -> Response:
        """Return the predictions."""
        return self.fleet.answer(self.name, request)


def _size(folder: Path) -> int:
    """Return the bytes of the files of a folder; 0 if there is none."""
    try:
        return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    except OSError:
        return 0


def _entry(name: str, registered: _Registered) -> dict[str, str]:
    return {"modelName": name, "modelUrl": registered.url}


def _not_found(name: str) -> Response:
    return _said(404, f"Model not found: {name}")


def _said(status: int, text: str) -> Response:
    return _json(status, {"status": text} if status == HTTPStatus.OK else {"code": status, "message": text})


def _json(status: int, value: object) -> Response:
    return Response(status, json.dumps(value).encode(), "application/json")


def _return_memory() -> None:
    """Have the C library return free memory to the system, which it else keeps."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
