"""Metrics that the container computes itself."""
