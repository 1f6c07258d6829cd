from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from smxgb.supervision.link import Link, Listener

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pipe() -> Iterator[tuple[Link, Listener]]:
    reading, writing = os.pipe()
    yield Link(writing), Listener(reading)
    os.close(reading)
    os.close(writing)
