"""The timer, and the statistics of what it measured."""
