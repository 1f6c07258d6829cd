"""Serving: the model of an endpoint or a batch transform answers requests.

What is imported here starts the workers, and needs the standard library only.
"""

from smxgb.serving.server import WORKER, serve

__all__ = ["WORKER", "serve"]
