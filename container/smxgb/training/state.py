"""The state of training between two rounds: all that decides the rounds that follow."""

from __future__ import annotations

from dataclasses import dataclass, field

type History = dict[str, dict[str, list[float]]]
"""Data set -> metric -> its value after each round, nan for a round in which it was not computed."""


@dataclass(frozen=True)
class Best:
    """The best round so far, counted from 0, and the value of the monitored metric after it.

    `model` has the bytes of its model where that can't be cut from the model of a later round.
    """

    round: int
    score: float
    model: bytes | None = None


@dataclass(frozen=True)
class TrainingState:
    """Training after so many `rounds`, as it can go on in another process.

    `model` is the booster as UBJSON, with the internal names of its features. `best` is None without early
    stopping, and before the monitored metric had a value. `undefined` names the metrics of which the log has
    said that they are undefined.
    """

    rounds: int
    model: bytes
    history: History = field(default_factory=dict)
    best: Best | None = None
    undefined: tuple[str, ...] = ()
