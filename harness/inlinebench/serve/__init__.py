"""Evaluates for Python callers: in their own process, or by a service that keeps judges ready for many callers."""
