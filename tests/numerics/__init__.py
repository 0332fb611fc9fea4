"""Numerics of honest and of cheating implementations, in PyTorch operators, to measure the tolerance with."""
