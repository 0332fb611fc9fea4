"""Evaluates on the nodes of a Ray cluster. The public name is `Pool`."""

from __future__ import annotations

from inlinebench.ray.pool import Pool

__all__ = ["Pool"]
