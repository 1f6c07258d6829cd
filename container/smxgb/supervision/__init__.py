"""Supervision: the parent process, which starts the work, watches it, and reports how it ended."""

from smxgb.supervision.supervisor import supervise

__all__ = ["supervise"]
