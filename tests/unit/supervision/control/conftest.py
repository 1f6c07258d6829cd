from __future__ import annotations

import pytest
from tests.unit.supervision.control.channel import Channel


@pytest.fixture
def channel() -> Channel:
    return Channel()
