"""The service: a request's bytes in, a response's bytes out. It knows nothing of HTTP's transport."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from smxgb.errors import JobError, PlatformError, UserError, as_job_error
from smxgb.log import log_error
from smxgb.rows import BODY_TYPES, UnfitError, body_form, read_body
from smxgb.serving.answers import answers
from smxgb.serving.responses import BATCH_FORMS, FORMS, choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Executor
    from typing import BinaryIO

    from smxgb.rows import BodyForm
    from smxgb.serving.endpoint import Endpoint
    from smxgb.serving.model import Ensemble
    from smxgb.serving.responses import ResponseForm

SPOOLED = 8 << 20
"""Bytes of a body, and of a response, that stay in memory: what is larger goes to a file."""

LABELLED = "1"


@dataclass(frozen=True)
class Request:
    """A request for predictions: its headers, and its body as a stream of `size` bytes at its beginning."""

    content_type: str
    accept: str
    body: BinaryIO | bytes
    size: int

    def head(self) -> bytes:
        """Return the first bytes of the body."""
        if isinstance(self.body, bytes):
            return self.body[:65_536]
        data = self.body.read(65_536)
        self.body.seek(0)
        return data

    def data(self) -> bytes:
        """Return all bytes of the body."""
        return self.body if isinstance(self.body, bytes) else self.body.read()


@dataclass(frozen=True)
class Response:
    """A response: its body as bytes, or as a file that stands at its beginning."""

    status: int
    body: bytes | BinaryIO = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class Service(Protocol):
    """What answers requests for predictions."""

    def answer(self, request: Request) -> Response:
        """Return the response; it raises nothing. Threads call it side by side."""

    def is_quick(self, size: int) -> bool:
        """Tell whether a request of this size takes less time than a change of threads is worth."""


QUICK_BYTES = 1 << 13
QUICK_TREES = 2_000
"""A small request to a model of few trees takes half a millisecond at most."""


@dataclass(frozen=True)
class Predictions:
    """Answers with the predictions of a model; `pool` predicts parts of large requests."""

    models: Ensemble
    endpoint: Endpoint
    forms: Mapping[str, ResponseForm]
    pool: Executor | None = None

    @classmethod
    def of(cls, models: Ensemble, endpoint: Endpoint, pool: Executor | None) -> Predictions:
        """Return what answers for an endpoint of one model, or a batch transform."""
        return cls(models, endpoint, BATCH_FORMS if endpoint.batch else FORMS, pool)

    def is_quick(self, size: int) -> bool:
        """Tell whether a request of this size takes less time than a change of threads is worth."""
        return size <= QUICK_BYTES and self.models.trees <= QUICK_TREES and not self.endpoint.keys

    def answer(self, request: Request) -> Response:
        """Return the predictions for the rows of a request, or what is wrong with it."""
        return guarded(self._answer, request)

    def _answer(self, request: Request) -> Response:
        if not request.size:
            return Response(204)
        form = choose(request.accept, self.endpoint.accept, self.forms)
        if form is None:
            return refusal(406, f"Accept: {request.accept} is not one of {', '.join(self.forms)}.", request)
        written, label_first = input_form(request)
        if written is None:
            known = ", ".join(BODY_TYPES)
            return refusal(415, f"The content type {request.content_type!r} is not one of {known}.", request)
        try:
            rows = read_body(
                request.body, request.size, written, self.models.signature, label_first=label_first
            )
            parts = form.parts(
                answers(self.models, rows, self.endpoint.keys, self.pool, named=form.holds_text)
            )
            return Response(200, spooled(parts), form.content_type)
        except UnfitError as error:
            return refusal(400, f"Unable to evaluate payload provided: {_text(error)}", request)
        except UserError as error:
            return refusal(415, f"Loading {written} data failed with Exception: {_text(error)}", request)


def input_form(request: Request) -> tuple[BodyForm | None, bool]:
    """Return how the body of a request is written, None if unknown, and whether labels come first."""
    name, *parameters = (part.strip() for part in request.content_type.lower().split(";"))
    label_first = any(
        key.strip() == "label_size" and value.strip() == LABELLED
        for key, _, value in (parameter.partition("=") for parameter in parameters)
    )
    return BODY_TYPES.get(name) if name else body_form(request.head()), label_first


def spooled(parts: Iterator[bytes]) -> bytes | BinaryIO:
    """Return parts as one: as bytes, or in a file if they are many."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > SPOOLED:
            file = tempfile.TemporaryFile()  # noqa: SIM115 - who sends the response closes it
            file.writelines(held)
            file.writelines(parts)
            file.seek(0)
            return file
    return b"".join(held)


def refusal(status: int, text: str, request: Request) -> Response:
    """Return a response that says what is wrong, as JSON if JSON was asked for."""
    if "json" in request.accept.lower():
        return Response(status, json.dumps({"error": text}).encode(), "application/json")
    return Response(status, text.encode())


def guarded(answer: Answer, request: Request) -> Response:
    """Return what `answer` returns, or a response for whatever it raises."""
    try:
        return answer(request)
    except MemoryError:
        return refusal(503, "There is not enough memory for this request: send fewer rows at once.", request)
    except Exception as error:  # noqa: BLE001 - a request must not end the server
        failure = as_job_error(error)
        log_error(f"A request failed. {failure}")
        status = 503 if isinstance(failure, PlatformError) else 500
        return refusal(status, _text(failure), request)


class Answer(Protocol):
    """A function that answers a request, and may raise."""

    def __call__(self, request: Request, /) -> Response:
        """Return the response."""


def _text(error: JobError) -> str:
    return " ".join(error.mistakes)
