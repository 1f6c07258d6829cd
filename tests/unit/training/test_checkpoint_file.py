from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smxgb.training.checkpoint_file import MAGIC, Checkpoint, decode, encode
from smxgb.training.state import Best, TrainingState

FACTS = {"eta": "0.3", "feature names": '["Größe", "b"]'}


def checkpoint(best: Best | None = None, history: list[float] | None = None) -> Checkpoint:
    state = TrainingState(3, b"the model", {"train": {"auc": history or [0.5]}}, best, ("train-auc",))
    return Checkpoint(state, FACTS, 2)


@pytest.mark.parametrize("best", [None, Best(1, 0.1), Best(1, 0.1, b"its model"), Best(2, math.inf, b"")])
def test_a_checkpoint_reads_back_as_it_was_written(best: Best | None) -> None:
    assert decode(encode(checkpoint(best))) == checkpoint(best)


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_values_read_back_to_the_last_bit(values: list[float]) -> None:
    assert decode(encode(checkpoint(history=values))).state.history == {"train": {"auc": values}}


def test_an_undefined_value_reads_back_as_nan() -> None:
    (value,) = decode(encode(checkpoint(history=[math.nan]))).state.history["train"]["auc"]
    assert math.isnan(value)


@given(st.data())
def test_no_damaged_byte_and_no_missing_end_goes_unnoticed(data: st.DataObject) -> None:
    whole = encode(checkpoint(Best(1, 0.1, b"its model")))
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    for broken in (bytes(damaged), whole[:at]):
        with pytest.raises(ValueError, match="it is"):
            decode(broken)


def test_a_file_of_another_version_is_no_checkpoint() -> None:
    with pytest.raises(ValueError, match="it is no checkpoint of this version"):
        decode(encode(checkpoint()).replace(MAGIC, b"smxgb checkpoint 2\n"))
