"""Decides whether the results of a call are right."""
