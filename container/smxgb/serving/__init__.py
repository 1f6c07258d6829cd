"""Serving: the model of an endpoint or a batch transform answers requests. The parent process is standard library only."""

from smxgb.serving.server import WORKER, serve

__all__ = ["WORKER", "serve"]
