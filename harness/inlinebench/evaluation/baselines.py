"""The reference compiled by `torch.compile`, as something else to be faster than."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inlinebench.problem.problem_file import describe
from inlinebench.problem.workload import Workload
from inlinebench.timing.blocking_kernel import BlockingLimit
from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.wire.arithmetic import seed_all

MODES = {"compile": None, "compile-max": "max-autotune"}
WARMUP = 4
"""Calls before the first that counts: compiling, and recording and replaying a CUDA graph."""


class Baselines:
    """The compiled references of one stage; each is compiled when it is first timed, and once.

    `notes` says which could not be measured, and why.
    """

    def __init__(
        self, workload: Workload, names: tuple[str, ...], clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._workload, self._clock, self._progress = workload, clock, progress
        self._models: dict[str, torch.nn.Module | None] = {}
        self._holds = {name: BlockingLimit() for name in names if name in MODES}
        self.notes: dict[str, str] = {}

    def time(self, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...], random_seed: int) -> dict[str, Sample]:
        """A sample of one call of each on these inputs, which stay as they are."""
        found = {}
        for name in self._holds:
            if name not in self._models:
                self._models[name] = self._prepare(name, tensors, non_tensors, random_seed)
            model = self._models[name]
            if model is not None:
                found[name] = self._call(name, model, tensors, non_tensors, random_seed)
        return found

    def _prepare(
        self, name: str, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...], random_seed: int
    ) -> torch.nn.Module | None:
        self._progress(f"compiling the baseline {name}")
        # Workers of Inductor's would be processes below the judge, among those of a candidate.
        torch._inductor.config.compile_threads = 1
        try:
            model: Any = torch.compile(self._workload.reference(), mode=MODES[name])
            for _ in range(WARMUP):
                self._call(name, model, tensors, non_tensors, random_seed)
        except Exception as error:  # noqa: BLE001
            # Dynamo, Inductor, Triton and the C++ compiler each raise their own; none of it is a solution's fault.
            self.notes[name] = f"baseline {name} not measured: {describe(error)}"
            return None
        self._holds[name] = BlockingLimit()  # what compiling took says nothing about later calls
        return model  # type: ignore[no-any-return]

    def _call(
        self, name: str, model: torch.nn.Module, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...],
        random_seed: int,
    ) -> Sample:
        probed, block = self._workload.probed, self._holds[name]
        own = [tensor.clone() if index in probed.mutated else tensor for index, tensor in enumerate(tensors)]
        arguments = probed.input_form.arguments(own, non_tensors)
        seed_all(random_seed)
        limit = block.limit_ms
        with torch.no_grad():
            _, sample = timed_call(self._clock, lambda: model(*arguments), lambda _: None, limit)
        if not sample.blocked:
            block.ran_out()
        return sample
