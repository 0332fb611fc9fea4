"""The process that owns inputs, reference, expected outputs, clock and verdict."""
