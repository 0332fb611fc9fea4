"""Times the reference compiled with `torch.compile`, as a second baseline next to eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inlinebench.problem.problem_file import describe
from inlinebench.problem.workload import Workload
from inlinebench.timing.blocking_kernel import BlockingLimit
from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.backward import compiled, marked

MODES = {"compile": None, "compile-max": "max-autotune"}
"""Names of baselines, and the `mode` that `torch.compile` gets for each."""
WARMUP = 4
"""Calls before the first counted one: they compile, and record and replay a CUDA graph."""


class Baselines:
    """The compiled references of one workload. Each is compiled once, when it is first timed.

    `notes` maps the names of baselines that could not be measured to the reason.
    """

    def __init__(
        self, workload: Workload, names: tuple[str, ...], clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._workload, self._clock, self._progress = workload, clock, progress
        self._models: dict[str, torch.nn.Module | None] = {}
        self._limits = {name: BlockingLimit() for name in names if name in MODES}
        self.notes: dict[str, str] = {}

    def time(self, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...], random_seed: int) -> dict[str, Sample]:
        """Times one call of each baseline on these inputs, without changing them. Returns the samples by name."""
        samples = {}
        for name in self._limits:
            if name not in self._models:
                self._models[name] = self._prepare(name, tensors, non_tensors, random_seed)
            model = self._models[name]
            if model is not None:
                samples[name] = self._call(name, model, tensors, non_tensors, random_seed)
        return samples

    def _prepare(
        self, name: str, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...], random_seed: int
    ) -> torch.nn.Module | None:
        self._progress(f"compiling the baseline {name}")
        # Inductor's worker processes would be children of the judge, which kills stray children after a candidate.
        torch._inductor.config.compile_threads = 1
        try:
            model = compiled(marked(self._workload.reference(), self._clock.mark), MODES[name])
            for _ in range(WARMUP):
                self._call(name, model, tensors, non_tensors, random_seed)
        except Exception as error:  # noqa: BLE001
            # Dynamo, Inductor, Triton and the C++ compiler raise various exceptions, none of them the solution's fault.
            self.notes[name] = f"baseline {name} not measured: {describe(error)}"
            return None
        self._limits[name] = BlockingLimit()  # compiling may have exhausted the limits, which later calls do not
        return model

    def _call(
        self, name: str, model: torch.nn.Module, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...],
        random_seed: int,
    ) -> Sample:
        probed, blocking = self._workload.probed, self._limits[name]
        own = self._workload.for_reference(tensors)
        arguments = probed.input_form.arguments(own, non_tensors)
        seed_all(random_seed)
        limit = blocking.limit_ms
        with torch.no_grad():
            _, sample = timed_call(self._clock, lambda: model(*arguments), lambda _: None, limit)
        if not sample.blocked:
            blocking.ran_out()
        return sample
