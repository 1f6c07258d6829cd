from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smxgb.errors import UserError
from smxgb.limits import Limits
from smxgb.settings import parse

NAMES = ("control_port", "start_timeout", "silence_timeout", "stop_timeout", "max_restarts")

NUMBERS = st.integers(-1, 2**32) | st.integers(1000, 70_000)
TEXTS = st.one_of(
    NUMBERS.map(str),
    NUMBERS.map(lambda number: f"+{number}.0"),
    NUMBERS.map(lambda number: f"{number:e}"),
    st.floats(allow_nan=False).map(str),
    st.text("0123456789+-.eE_ ", max_size=8),
    st.sampled_from(["", "null", "None", "soon", "true", "[45]", "\u0661"]),
)
VALUES = st.one_of(
    TEXTS,
    TEXTS.map(json.dumps),
    TEXTS.map(repr),
    TEXTS.map(lambda text: f" {text} "),
    NUMBERS,
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(NUMBERS),
)


@given(st.sampled_from(NAMES), VALUES)
@example("silence_timeout", "1e3")
@example("silence_timeout", "+45")
@example("control_port", "80")
def test_supervisors_and_work_read_the_same_number(name: str, value: object) -> None:
    try:
        setting = getattr(parse({"num_round": "1", name: value}).settings, name)
    except UserError:
        setting = getattr(Limits(), name)  # the work refuses it, so that the supervisors need no value of it
    assert getattr(Limits.read({name: value}), name) == setting


@pytest.mark.parametrize("text", ["45", "45.0", '"45"', "'45'", " 45 ", "+45", "4.5e1", 45, 45.0])
def test_a_number_of_seconds_in_any_spelling(text: object) -> None:
    assert Limits.read({"silence_timeout": text}) == Limits(silence_timeout=45)


@pytest.mark.parametrize("text", ["", "soon", "-3", "0", "4.5", "1e-3", None, [45], True, "99999999999999"])
def test_a_value_that_is_no_number_of_seconds_leaves_the_default(text: object) -> None:
    assert Limits.read({"start_timeout": text}) == Limits()


def test_a_port_that_a_job_may_not_choose_leaves_the_default() -> None:
    for port in (80, 1023, 65536):
        assert Limits.read({"control_port": str(port)}) == Limits()
    for port in (1024, 65535):
        assert Limits.read({"control_port": str(port)}) == Limits(control_port=port)
