from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from smxgb.literals import number_of, unquoted, whole_number

DIGITS = st.text("0123456789+-.eE_ infa\u0661", max_size=9)


@given(DIGITS)
def test_a_number_is_the_one_that_python_reads(text: str) -> None:
    number = number_of(text)
    assert number is None or number == float(text)


@given(st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_json_writes_is_read(number: float) -> None:
    assert number_of(json.dumps(number)) == number


@given(st.floats(-(2.0**52), 2.0**52))
def test_a_number_with_a_fraction_is_never_made_whole(number: float) -> None:
    assert whole_number(str(number)) == number


@given(st.text().filter(lambda text: text == text.strip() and text[:1] not in {'"', "'"}))
def test_quotes_of_json_and_python_are_taken_off(text: str) -> None:
    assert unquoted(json.dumps(json.dumps(text))) == unquoted(f" {text!r} ") == text
