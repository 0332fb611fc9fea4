"""Compares a solution's outputs with the reference and the oracle, and describes how they differ."""
