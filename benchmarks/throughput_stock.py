"""A simple harness for one solution, in its own process. Started by throughput.py.

    python benchmarks/throughput_stock.py SOLUTION PROBLEM DEVICE BEGUN

Imports both files and constructs the solution, which builds with torch's own `load_inline`. Prints a line of JSON with
the seconds spent inside `load_inline` and the seconds since BEGUN (a `time.time()`). Up to here the GPU is not used.
Then waits for a line on stdin, and exits at its end. After the line, draws inputs on the CPU and moves them to the
device, checks a few calls, times more calls with events, and prints a second line of JSON with the outcome.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch
from torch.utils import cpp_extension

SEED = 1
CHECKED_CALLS, TIMED_CALLS = 5, 50
TOLERANCE = 1e-2
"""The usual tolerance of simple harnesses."""


def watched(build: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Wraps a function to append the seconds spent in each call to `spent`."""

    def timed(*arguments: Any, **named: Any) -> Any:
        begin = time.monotonic()
        try:
            return build(*arguments, **named)
        finally:
            spent.append(time.monotonic() - begin)

    return timed


def load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"stock_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def evaluate(problem: types.ModuleType, solution: types.ModuleType, device: torch.device) -> dict[str, Any]:
    """Returns whether all checked calls matched, and the median times of reference and solution in ms."""
    models = []
    for kind in (problem.Model, solution.ModelNew):
        torch.manual_seed(SEED)
        models.append(kind(*problem.get_init_inputs()).to(device))
    reference, candidate = models

    def draw() -> list[Any]:
        return [each.to(device) if isinstance(each, torch.Tensor) else each for each in problem.get_inputs()]

    with torch.no_grad():
        matches = True
        for _ in range(CHECKED_CALLS):
            inputs = draw()
            matches &= alike(reference(*inputs), candidate(*inputs))
        inputs = draw()
        times_ms = [median_ms(partial(model, *inputs), device) for model in models]
    return {"matches": matches, "reference_ms": times_ms[0], "solution_ms": times_ms[1]}


def alike(expected: Any, found: Any) -> bool:
    """Whether outputs match. Outputs may be nested sequences of tensors."""
    if isinstance(expected, torch.Tensor):
        return torch.allclose(expected, found, rtol=TOLERANCE, atol=TOLERANCE)
    return len(expected) == len(found) and all(map(alike, expected, found))


def median_ms(work: Callable[[], object], device: torch.device) -> float:
    """Returns the median time of the timed calls in ms, by events, or on the CPU by the host's clock."""
    took: list[float] = []
    event: Callable[..., Any] = torch.cuda.Event
    for _ in range(TIMED_CALLS):
        if device.type == "cuda":
            start, stop = event(enable_timing=True), event(enable_timing=True)
            start.record()
            work()
            stop.record()
            stop.synchronize()
            took.append(start.elapsed_time(stop))
        else:
            begin = time.perf_counter()
            work()
            took.append((time.perf_counter() - begin) * 1e3)
    return sorted(took)[len(took) // 2]


def say(stream: TextIO, **facts: Any) -> None:
    print(json.dumps(facts), file=stream, flush=True)


def main(solution: str, problem: str, device: str, begun: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps the output of compilers and solutions apart from the JSON
    spent: list[float] = []
    cpp_extension.load_inline = watched(cpp_extension.load_inline, spent)
    reference, candidate = load(Path(problem)), load(Path(solution))
    candidate.ModelNew(*reference.get_init_inputs())  # some solutions build in their constructor
    say(answers, build_s=sum(spent), after_s=time.time() - float(begun))
    if sys.stdin.readline():
        say(answers, **evaluate(reference, candidate, torch.device(device)))


if __name__ == "__main__":
    main(*sys.argv[1:])
