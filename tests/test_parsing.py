"""Several threads parse at the same time."""

from __future__ import annotations

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from inlinebench.parsing import parse, parse_expression

DEEP = "x = " + "(" * 60 + "1" + " + 1)" * 60 + "\n"


def others_run(phase: str, facts: dict[str, int]) -> None:
    time.sleep(0.0001)


def test_threads_parse_at_the_same_time() -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(50)  # collections in the middle of a tree, during which other threads run
    gc.callbacks.append(others_run)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(parse, [DEEP * 4] * 200))
    finally:
        gc.callbacks.remove(others_run)
        gc.set_threshold(*thresholds)
    assert {len(tree.body) for tree in found} == {4}


def test_what_is_not_python_raises_with_the_name_of_the_file() -> None:
    with pytest.raises(SyntaxError) as raised:
        parse("x = (", "problem.py")
    assert raised.value.filename == "problem.py"


def test_expressions_are_parsed_as_such() -> None:
    assert ast.unparse(parse_expression("1 + x")) == "1 + x"
    with pytest.raises(SyntaxError):
        parse_expression("x = 1")
