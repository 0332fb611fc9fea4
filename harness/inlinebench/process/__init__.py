"""Starts candidate and probe processes through a forkserver, and exchanges messages with candidates."""
