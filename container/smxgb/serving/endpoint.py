"""The endpoint: what SageMaker and its owner say about serving, in environment variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.environment import Paths
from smxgb.errors import Mistakes, UserError
from smxgb.literals import whole_number
from smxgb.log import log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PORT = 8080
MIB = 1 << 20
PAYLOAD_MIB = 6
"""The largest request of a real-time endpoint (SageMaker's quotas)."""

SECONDS = range(1, 3601)
KEYS = (
    "predicted_label",
    "labels",
    "probability",
    "probabilities",
    "raw_score",
    "raw_scores",
    "predicted_score",
    "contributions",
    "leaf",
)
"""What an answer can be asked to hold: the keys of AWS's image, then ours."""


@dataclass(frozen=True)
class Endpoint:
    """How to serve.

    Attributes:
        port: Where requests come.
        models: The folder of the model.
        workers: How many processes answer, None for as many as fit.
        timeout: Seconds in which a request must have arrived.
        largest: Bytes of the largest body, None for no limit.
        accept: The content type of answers to requests that want none in particular.
        keys: What each answer holds; none for the plain predictions.
        ensemble: Whether all models of the folder answer together.
        batch: Whether it serves a batch transform.
        multi_model: Whether models are loaded and unloaded by requests.
        program: The file with the user's functions, None for none.
        submitted: Where the user's code is, if not in the folder of the model.
    """

    port: int
    models: Path
    workers: int | None = None
    timeout: int = 60
    largest: int | None = PAYLOAD_MIB * MIB
    accept: str = "text/csv"
    keys: tuple[str, ...] = ()
    ensemble: bool = True
    batch: bool = False
    multi_model: bool = False
    program: str | None = None
    submitted: str | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Endpoint:
        """Return what the environment says.

        Raises:
            UserError: With all values that are not allowed.
        """
        values = _Values(environ)
        batch = values.flag("SAGEMAKER_BATCH")
        endpoint = cls(
            port=values.number("SAGEMAKER_BIND_TO_PORT", range(65_536)) or values.port(),
            models=Paths.from_environ(environ).model,
            workers=values.number("SAGEMAKER_MODEL_SERVER_WORKERS", range(1, 1025)),
            timeout=values.number("SAGEMAKER_MODEL_SERVER_TIMEOUT", SECONDS) or 60,
            largest=values.payload(batch=batch),
            accept=environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT") or "text/csv",
            keys=_keys(environ.get("SAGEMAKER_INFERENCE_OUTPUT", "")),
            ensemble=values.flag("SAGEMAKER_INFERENCE_ENSEMBLE", default=True),
            batch=batch,
            multi_model=values.flag("SAGEMAKER_MULTI_MODEL"),
            program=environ.get("SAGEMAKER_PROGRAM") or None,
            submitted=environ.get("SAGEMAKER_SUBMIT_DIRECTORY") or None,
        )
        values.mistakes.raise_any()
        return endpoint


class _Values:
    """Values of environment variables; what is wrong with them gathers in `mistakes`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.mistakes = Mistakes()

    def number(self, name: str, allowed: range) -> int | None:
        """Return a whole number, None if it is not set or not allowed."""
        text = self._environ.get(name)
        if not text:
            return None
        value = whole_number(text)
        if isinstance(value, int) and value in allowed:
            return value
        self.mistakes.add(f"{name}={text!r} must be a whole number from {allowed[0]} to {allowed[-1]}.")
        return None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value, in the spellings that AWS's images and SDKs write."""
        text = self._environ.get(name, "").strip().lower()
        if text not in {"", "true", "false", "1", "0"}:
            self.mistakes.add(f"{name}={text!r} must be true or false.")
        return text in {"true", "1"} if text else default

    def port(self) -> int:
        """Return the port that is not given: 8080, or the first that SageMaker leaves free."""
        text = self._environ.get("SAGEMAKER_SAFE_PORT_RANGE")
        if not text:
            return PORT
        low, _, high = text.partition("-")
        if low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < 65_536:  # noqa: PLR2004 - the ports of TCP
            return PORT if int(low) <= PORT <= int(high) else int(low)
        self.mistakes.add(f"SAGEMAKER_SAFE_PORT_RANGE={text!r} must be two ports, such as 21000-22000.")
        return PORT

    def payload(self, *, batch: bool) -> int | None:
        """Return the bytes of the largest body, None for no limit."""
        mib = self.number("SAGEMAKER_MAX_PAYLOAD_IN_MB", range(1 << 20)) if batch else None
        if mib is not None:
            return mib * MIB or None
        return self.number("MAX_CONTENT_LENGTH", range(1, 1 << 40)) or PAYLOAD_MIB * MIB


def _keys(text: str) -> tuple[str, ...]:
    """Return the keys of a list. An unknown one is answered with null, as AWS's image does, and logged."""
    keys = tuple(key.strip() for key in text.split(",") if key.strip())
    unknown = [key for key in keys if key not in KEYS]
    if unknown:
        log(f"SAGEMAKER_INFERENCE_OUTPUT: {', '.join(unknown)} will be null. There are {', '.join(KEYS)}.")
    return keys


def checked_endpoint(environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint, whose folder of models must be there.

    Raises:
        UserError: If a value is not allowed, or if there is no folder.
    """
    endpoint = Endpoint.read(environ)
    if not endpoint.multi_model and not endpoint.models.is_dir():
        raise UserError(f"{endpoint.models} does not exist: the endpoint has no model.")
    return endpoint
