"""Judges implementations of a problem in this process, through the judge's own comparison, without times.

A pair file is a problem file with the tables HONEST and CHEATS: functions of the reference model and the inputs that
return what `forward` would.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.checks import Checker
from inlinebench.evaluation.correctness.runs import Runs
from inlinebench.evaluation.correctness.sensitivity import Sensitivity
from inlinebench.messages import ProblemAt
from inlinebench.problem.forward import Output, run
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Received, Workload, snapshot
from inlinebench.results.result import Errors
from inlinebench.wire.arithmetic import exact_arithmetic

from .arithmetic import Unavailable

PAIRS = Path(__file__).parent / "pairs"


@dataclass(frozen=True)
class Judged:
    """How one implementation was judged in one call."""

    name: str
    """The implementation."""
    honest: bool
    """Whether it must pass."""
    variant: Variant
    """The kind of inputs."""
    failure: str
    """What is wrong, or "" if it passed."""
    share: float
    """The largest error as a share of its limit. Infinite for errors that are not finite."""
    errors: Errors | None
    """The errors of the first floating-point output, if they were measured."""


class _RememberedRuns:
    """Runs whose results are kept, since all implementations of a call need the same ones."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.have_room_for, self.exact, self.own = runs.have_room_for, runs.exact, runs.own
        self.perturbed = functools.cache(runs.perturbed)
        self.pair = functools.cache(runs.pair)


class _Remembering(Sensitivity):
    """Gives the same runs to all implementations of one call."""

    made: Any = None

    def runs(self, call: CallCheck) -> Any:
        if self.made is None:
            self.made = _RememberedRuns(super().runs(call))
        return self.made


class Pair:
    """A pair file that is prepared for calls on a device. Use it as a context manager."""

    def __init__(self, path: Path, shape: str, device: torch.device) -> None:
        self.path, self._shape, self._device = path, shape, device
        self._folder = TemporaryDirectory()

    def __enter__(self) -> Pair:
        exact_arithmetic(tf32=False)
        constants = {} if self._shape == "full" else _constants(self.path, self._shape)
        problem = ProblemAt(self.path, self._shape, constants)
        probed = run_probe(problem, self._device, True, (), report=lambda _: None)
        assert isinstance(probed, ProbeResult), probed
        self._workload = Workload(problem, probed, self._device, Path(self._folder.name))
        self._module: types.ModuleType = self._workload.module
        self.variants: tuple[Variant, ...] = (Variant.PLAIN, *sorted(probed.variants))
        self.implementations: dict[str, bool] = {
            **dict.fromkeys(self._module.HONEST, True), **dict.fromkeys(self._module.CHEATS, False)}
        self.few: bool = getattr(self._module, "FEW", False)
        """Whether outputs have too few elements for every cheat to show in every call."""
        named: dict[str, str] = getattr(self._module, "REVEALED_BY", {})
        self.revealed_by = {name: Variant[variant] for name, variant in named.items()}
        """Cheats that inputs as drawn may hide, and the variant that reveals each."""
        return self

    def __exit__(self, *_: object) -> None:
        self._workload.close()
        self._folder.cleanup()

    def call(self, variant: Variant, seed: int, only: Callable[[str], bool] = lambda _: True) -> Iterator[Judged]:
        """Judges one call of each available implementation on the same inputs."""
        workload = self._workload
        inputs, non_tensors = workload.draw(0, seed, variant)
        arguments = workload.probed.input_form.arguments
        sensitivity = _Remembering(workload)
        reference = workload.reference()
        before = snapshot(reference)
        expected = Output.of(run(reference, arguments([each.clone() for each in inputs], non_tensors), 0)).dense()
        for name, honest in self.implementations.items():
            function = (self._module.HONEST | self._module.CHEATS)[name]
            if not only(name):
                continue
            try:
                with torch.no_grad():
                    value: Any = function(workload.reference(), *arguments(inputs, non_tensors))
            except Unavailable:
                continue
            found = Output.of(value)
            for out, tensor in zip(workload.outputs(0), found.tensors, strict=True):
                assert (out.shape, out.dtype) == (tensor.shape, tensor.dtype), f"{name}: {tensor.shape} {tensor.dtype}"
            checker = Checker(workload, {}, None, sensitivity)
            failure = checker.check(CallCheck(
                inputs, non_tensors, 0, before, expected, snapshot(reference),
                tuple(map(repr, found.non_tensors)), {}, thorough=True, states_written=False,
                received=Received(found.tensors)))
            check = checker.summary("", [])
            worst = check.worst_error
            share = float("inf") if worst is None else worst / (check.tolerance or 1.0)
            errors = check.accuracy[0].solution if check.accuracy else None
            yield Judged(name, honest, variant, failure, share, errors)


def _constants(path: Path, shape: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "pair", "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return dict(namespace["SHAPES"][shape])
