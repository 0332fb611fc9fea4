"""Profiles one call of a solution with Nsight Compute."""
