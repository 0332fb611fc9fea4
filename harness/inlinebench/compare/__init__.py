"""Compares outputs with the reference's, and describes how they differ."""
