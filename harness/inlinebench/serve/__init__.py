"""Evaluations for many callers at once, in threads and processes: one server for a user, which keeps judges ready."""
