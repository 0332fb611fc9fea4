"""Evaluates one solution against one problem: makes its calls, checks each of them, and times them.

Start reading at `evaluation.evaluate`. It takes a candidate process from `candidates`, and `calls` makes the calls in
it. `checks` compares each call with the reference, `timings` collects the times, and `integrity` checks that the times
and the work are real.
"""
