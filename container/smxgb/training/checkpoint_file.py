"""The format of checkpoints: training's state and the job's fingerprint in one file, with a checksum.

docs/checkpoints.md describes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping  # noqa: TC003 - pydantic reads it
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from smxgb.training.state import Best, TrainingState

if TYPE_CHECKING:
    from smxgb.training.fingerprint import Facts

MAGIC = b"smxgb checkpoint 1\n"
"""The beginning of every file; the number is the format's version."""

CHECKSUM, LENGTH = 32, 8
"""Bytes of the checksum (SHA-256), and of the header's length (unsigned, the lowest byte first)."""


@dataclass(frozen=True)
class Checkpoint:
    """A state, the facts of the job that it belongs to, and the number of its workers."""

    state: TrainingState
    facts: Facts
    workers: int


@dataclass(frozen=True)
class _Header:
    rounds: int
    model_bytes: int
    history: dict[str, dict[str, list[float]]]
    best_round: int | None
    best_score: float | None
    best_model_bytes: int | None
    undefined: tuple[str, ...]
    facts: Mapping[str, str]
    workers: int


HEADER = TypeAdapter(_Header)


def encode(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a file."""
    state, best = checkpoint.state, checkpoint.state.best
    best_model = best.model if best else None
    header = _Header(
        state.rounds,
        len(state.model),
        state.history,
        best.round if best else None,
        best.score if best else None,
        None if best_model is None else len(best_model),
        state.undefined,
        checkpoint.facts,
        checkpoint.workers,
    )
    # Undefined values stand there as NaN, which is no JSON; pydantic and Python read it.
    text = json.dumps(HEADER.dump_python(header)).encode()
    body = b"".join((len(text).to_bytes(LENGTH, "little"), text, state.model, best_model or b""))
    return MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Checkpoint:
    """Return the checkpoint of a file's content. Raises ValueError, with what is wrong, if it holds none."""
    if not data:
        raise ValueError("it is empty")
    if not data.startswith(MAGIC):
        raise ValueError("it is no checkpoint of this version")
    checksum, body = data[len(MAGIC) :][:CHECKSUM], data[len(MAGIC) + CHECKSUM :]
    if hashlib.sha256(body).digest() != checksum:
        raise ValueError("it is damaged or incomplete: its checksum differs")
    begin = LENGTH + int.from_bytes(body[:LENGTH], "little")
    try:
        header = HEADER.validate_json(body[LENGTH:begin])
    except ValidationError:
        raise ValueError("it is no checkpoint of this version") from None
    model, rest = body[begin:][: header.model_bytes], body[begin + header.model_bytes :]
    best = None
    if header.best_round is not None and header.best_score is not None:
        best = Best(header.best_round, header.best_score, None if header.best_model_bytes is None else rest)
    state = TrainingState(header.rounds, model, header.history, best, header.undefined)
    return Checkpoint(state, header.facts, header.workers)
