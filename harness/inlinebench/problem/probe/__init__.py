"""Tries a problem's reference in a process of its own, before the judge relies on it."""

FORWARD_SEED = 2
"""The seed that the probe sets before each call of the reference."""
