"""What a simple harness does with one solution, in a process of its own; started by throughput.py.

    python benchmarks/throughput_stock.py SOLUTION PROBLEM DEVICE BEGUN

Imports both files and constructs the solution, which builds it by torch's own `load_inline`, and prints a line of JSON:
the seconds spent inside `load_inline`, and those since BEGUN (by `time.time()`). Then it waits for a line on stdin, and
ends if there is none: until here no work is given to the GPU. After it, inputs are drawn on the CPU and moved; a few
calls are checked, more are timed with events, and a second line of JSON says whether the outputs matched.
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
"""The usual one of simple harnesses."""


def watched(build: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The same function, which also notes the seconds spent in it."""

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
    """Whether all checked calls matched, and the median times of reference and solution in ms."""
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
    """Whether outputs match, which may be several."""
    if isinstance(expected, torch.Tensor):
        return torch.allclose(expected, found, rtol=TOLERANCE, atol=TOLERANCE)
    return len(expected) == len(found) and all(map(alike, expected, found))


def median_ms(work: Callable[[], object], device: torch.device) -> float:
    """The median of the timed calls, by events; on the CPU by the host's clock."""
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
    os.dup2(2, 1)  # what compilers and solutions print is no answer
    spent: list[float] = []
    cpp_extension.load_inline = watched(cpp_extension.load_inline, spent)
    reference, candidate = load(Path(problem)), load(Path(solution))
    candidate.ModelNew(*reference.get_init_inputs())  # some build here
    say(answers, build_s=sum(spent), after_s=time.time() - float(begun))
    if sys.stdin.readline():
        say(answers, **evaluate(reference, candidate, torch.device(device)))


if __name__ == "__main__":
    main(*sys.argv[1:])
