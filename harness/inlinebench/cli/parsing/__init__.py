"""Parses command lines: the parser, the groups of options, and the types of their values."""
