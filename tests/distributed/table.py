"""The table that the soak test of failures prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """What happened to which host when; how all ended: exit codes, seconds until the last, failures."""

    fault: str
    victim: str
    stage: str
    codes: list[int]
    seconds: float
    failures: list[str]

    def shown(self) -> list[str]:
        codes = ", ".join(map(str, self.codes))
        return [
            f"{self.fault:16} {self.victim:6} {self.stage:16} exit {codes:13} {self.seconds:5.1f} s",
            *(f"    {number}: {text.splitlines()[0]}" for number, text in enumerate(self.failures, start=1)),
        ]


TABLE: list[Line] = []
