"""Finds what makes a problem a bad benchmark: answers that need no work, and work that the comparison cannot see.

Each problem is audited in a process of its own, so that one that crashes or hangs costs only its own findings.
"""
