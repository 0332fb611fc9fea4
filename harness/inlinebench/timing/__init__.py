"""Timing of calls, and the statistics of the times."""
