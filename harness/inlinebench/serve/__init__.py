"""Serves `inlinebench.evaluate`: one server process for each user keeps judges ready for all threads and processes."""
