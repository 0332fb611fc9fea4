"""Integrity checks: whether a solution's reported times are true, and whether its own kernels do the work."""
