from __future__ import annotations

from typing import TYPE_CHECKING

from tests.distributed.table import TABLE

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TABLE:
        terminalreporter.section("a host fails, or a process of one")
        for line in TABLE:
            for text in line.shown():
                terminalreporter.line(text)
