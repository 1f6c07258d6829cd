"""Supervision: the parent process, which starts the work, watches it, and says how it ended."""

from smxgb.supervision.supervisor import supervise

__all__ = ["supervise"]
