"""The order of the checks of one problem."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from inlinebench.audit import checks, gradients
from inlinebench.audit.prepared import Prepared
from inlinebench.audit.records import Audited, Checking, Flaw
from inlinebench.judge.derived import last_of, smaller_ones
from inlinebench.messages import ProblemAt
from inlinebench.problem.forward import is_sticky
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import CannotRun, ProbeResult
from inlinebench.problem.problem_file import ProblemError, describe

Check = Callable[[Prepared], Iterator[Flaw]]

ALWAYS: dict[str, Check] = {
    "random numbers": checks.random_numbers,
    "variants": checks.variants,
    "rounding": checks.only_rounding,
    "constant outputs": checks.constant_outputs,
    "gradients": gradients.wrong_gradients,
}
"""The checks that are always made."""
IF_OUTPUTS_MATTER: dict[str, Check] = {
    "inputs": checks.inputs_without_effect,
    "weights": checks.weights_without_effect,
    "precision": checks.low_precision,
    "operators": checks.redundant_operators,
}
"""The checks that are left out if all outputs are constant or rounding, which explains whatever they would find."""
ABOUT_OUTPUTS = ("only rounding", "constant output")


def audit(problem: ProblemAt, device: torch.device) -> Iterator[Checking | Flaw | Audited]:
    """Audits a problem at a shape. At last yields `Audited`.

    A CUDA error propagates as an exception: the process cannot go on after one.
    """
    at, probed = _probed(problem, device)
    if isinstance(probed, CannotRun):
        yield Flaw("does not run", probed.own_fault, probed.reason)
        yield Audited(at.constants)
        return
    with tempfile.TemporaryDirectory(prefix="inlinebench-audit-") as folder:
        try:
            with Prepared(at, probed, device, Path(folder)) as prepared:
                yield from _checked(prepared)
        except (ProblemError, torch.OutOfMemoryError, MemoryError) as error:
            out_of_memory = not isinstance(error, ProblemError)
            yield Flaw("does not run", not out_of_memory, describe(error))
    yield Audited(at.constants)


def _checked(prepared: Prepared) -> Iterator[Checking | Flaw]:
    found: list[Flaw] = []
    for name, check in {**ALWAYS, **IF_OUTPUTS_MATTER}.items():
        about = [each for each in found if each.name in ABOUT_OUTPUTS]
        if name in IF_OUTPUTS_MATTER and _covers(prepared, [each for each in about if each.fault]):
            return
        yield Checking(name)
        try:
            for finding in check(prepared):
                if finding.fault or not finding.figures.get("as_drawn_only") or not _covers(prepared, about):
                    found.append(finding)
                    yield finding
        except (ProblemError, torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # a fault of one check must not hide what the others find
            if is_sticky(error):
                raise
            yield Flaw("not checked", False, f"{name}: {describe(error)}")


def _covers(prepared: Prepared, about: list[Flaw]) -> bool:
    """Whether there is a finding about each output."""
    outputs = [name for name, each in next(prepared.calls()).expected.items() if each.own.numel()]
    return {finding.figures["output"] for finding in about} >= set(outputs)


def _probed(problem: ProblemAt, device: torch.device) -> tuple[ProblemAt, ProbeResult | CannotRun]:
    """Probes a problem. Of a derived shape, returns the first constants that the reference runs with."""
    todo, failures = [problem.constants, *problem.alternatives], list[CannotRun]()
    at = problem
    while todo:
        at = replace(problem, constants=todo.pop(0), alternatives=())
        probed = run_probe(at, device, True, (), report=lambda _: None)
        if isinstance(probed, ProbeResult):
            return at, probed
        failures.append(probed)
        if probed.beyond_limits:
            todo = smaller_ones(todo, at.constants)
    return at, last_of(failures)
