"""The fast way for small bodies of CSV gives what Arrow gives, to the bit, or gives way to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smxgb.rows import Schema, Signature, read_body
from smxgb.rows.bodies.plain import plain_rows

MIDDLES = [
    str(np.float64(np.float32(start)) / 2 + np.float64(np.nextafter(np.float32(start), np.float32(9e9))) / 2)
    for start in (1, 0.1, 16_777_216, 3.3e-5)
]
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1_000, 1_000, allow_nan=False, places=12).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        [*MIDDLES, *(f"{middle}0000000000001" for middle in MIDDLES), "", "1.", ".5", "-.5", "+1", "1e400"]
    ),
)
ROWS = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(ROWS)
@example([["1.00000005960464477540", "2"]])
@example([["1e-45", "1"], ["", "-0"]])
def test_plain_rows_are_those_of_arrow(rows: list[list[str]]) -> None:
    body = "\n".join(",".join(row) for row in rows).encode()
    found = plain_rows(body, len(rows[0]))
    if found is not None:
        assert found.tobytes() == _by_arrow(body, len(rows[0])).tobytes()


@pytest.mark.parametrize(
    "body",
    [
        b"1,x",
        b"1,2,3",
        b"1",
        b"1,1_0",
        b'"1",2',
        b"1,2\r3,4\n5,6",
        b"1,-",
        b"1, 2",
        b"1,NA",
        b"a,b\n1,2",
        b"1,1e39",
    ],
)
def test_what_is_not_plain_is_left_to_arrow(body: bytes) -> None:
    assert plain_rows(body, 2) is None


def test_many_plain_numbers_are_read_the_fast_way() -> None:
    values = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    body = "\r\n".join(",".join(map(repr, row)) for row in values.tolist()).encode()
    found = plain_rows(body, 8)
    assert found is not None
    assert np.array_equal(found, values)


def _by_arrow(body: bytes, width: int) -> np.ndarray:
    first, rest = body.split(b",", 1)
    quoted = b'"' + first + b'",' + rest
    signature = Signature(Schema.unnamed(width), infinity="missing")
    return np.concatenate(list(read_body(quoted, len(quoted), "csv", signature)))
