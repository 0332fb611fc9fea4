"""Prepares workloads for their solutions, those of one set at a time: probe, shared buffers, costs and baselines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.compare.tolerance import by_sensitivity, by_size, compare
from inlinebench.evaluation.baselines import Baselines
from inlinebench.evaluation.candidates import Candidates
from inlinebench.judge.derived import last_of, smaller_ones
from inlinebench.judge.device_context import DeviceContext
from inlinebench.messages import ProblemAt, Settings
from inlinebench.problem import own_code
from inlinebench.problem.probe.process import ProbeProcess
from inlinebench.problem.probe.records import CannotRun, ProbeResult
from inlinebench.problem.workload import Workload


@dataclass(frozen=True)
class PreparedWorkload:
    """A workload that is ready for solutions."""

    workload: Workload
    """The workload."""
    baselines: Baselines | None
    """Its baselines. None if none were asked for."""


class ProblemCache:
    """The workloads that were prepared last, and problems that cannot run.

    Args:
        context: the device.
        settings: the options of the run.
        probe: probes references.
        candidates: is settled before times are measured, and closes the shared buffers.
        scratch: a folder for the workload's files.
        progress: reports the current step.
    """

    def __init__(
        self, context: DeviceContext, settings: Settings, probe: ProbeProcess, *, candidates: Candidates,
        scratch: Path, progress: Callable[[str], None],
    ) -> None:
        self._context, self._settings, self._probe = context, settings, probe
        self._candidates, self._scratch, self._progress = candidates, scratch, progress
        self._prepared: dict[tuple[str, str, str], PreparedWorkload] = {}
        self._cannot: dict[tuple[str, str, str], CannotRun] = {}
        self._own_kernels_loaded = False
        self._torch_settings = own_code.TorchSettings()

    def prepare(self, problem: ProblemAt, among: Sequence[ProblemAt] = ()) -> PreparedWorkload | CannotRun:
        """Returns the problem as a workload, or why it cannot run. Raises ProblemError and torch.OutOfMemoryError.

        `among` are the problems of its set. Workloads of these stay prepared, all others are closed.
        """
        if problem.key in self._prepared:
            return self._prepared[problem.key]
        if problem.key in self._cannot:
            return self._cannot[problem.key]
        self._close_all_but({each.key for each in among})
        self._progress("preparing the problem")
        at, probed = self._probed(problem)
        if isinstance(probed, CannotRun):
            self._cannot[problem.key] = probed
            return probed
        workload = self._set_up(at, probed, max(1, len(among)))
        context, settings, baselines = self._context, self._settings, None
        if context.times_calls and settings.baselines:
            baselines = Baselines(workload, settings.baselines, context.clock, self._progress)
        self._prepared[problem.key] = PreparedWorkload(workload, baselines)
        return self._prepared[problem.key]

    def _set_up(self, at: ProblemAt, probed: ProbeResult, of_set: int) -> Workload:
        """Allocates the shared buffers, and measures the costs of the harness's own steps."""
        context, settings = self._context, self._settings
        if settings.timing:
            self._candidates.wait_for_starts()
        workload = Workload(at, probed, context.device.torch_device, self._scratch,
                            host_arena=settings.sanitize is not None, of_set=of_set)
        try:
            if context.times_calls:
                null_ms = context.peaks.null_ms if context.peaks else None
                workload.measure_costs(context.clock, null_ms)  # now, because no candidate runs or has left work behind
        except BaseException:
            workload.close()  # the next solution prepares the problem again
            raise
        return workload

    def _probed(self, problem: ProblemAt) -> tuple[ProblemAt, ProbeResult | CannotRun]:
        """Probes a problem. Of a derived shape, returns the first constants that the reference runs with."""
        settings, todo = self._settings, [problem.constants, *problem.alternatives]
        failures: list[CannotRun] = []
        while True:
            at = replace(problem, constants=todo.pop(0), alternatives=())
            self._probe.begin(at, settings.variants, settings.memory_bytes)
            self._load_own_kernels()
            probed = self._probe.finish(settings.problem_timeout, self._progress)
            if not isinstance(probed, CannotRun):
                return at, probed
            failures.append(probed)
            if probed.beyond_limits:
                todo = smaller_ones(todo, at.constants)
            if probed.lacks_package or not todo:
                return at, last_of(failures)

    def _load_own_kernels(self) -> None:
        """Runs the kernels that check calls once, because CUDA loads a kernel at its first launch."""
        if self._own_kernels_loaded or self._context.device.kind.emulates_cuda:
            return
        self._own_kernels_loaded = True
        values = torch.ones(1 << 10, device=self._context.device.torch_device)
        compare(values, values.clone(), None, by_size(values, 0.0))
        compare(values, values.clone(), values.double(), by_sensitivity(values.dtype, 1.0, values.double()))
        same_bits(values, values.clone())
        if not self._settings.timing and not self._probe.has_answered():
            for matrix in (values.view(32, 32), values.double().view(32, 32)):
                matrix @ matrix  # starts cuBLAS, which most references and their oracles need

    def _close_all_but(self, keys: Collection[tuple[str, str, str]]) -> None:
        if self._prepared.keys() - keys:
            self._candidates.unmap()
        for key in self._prepared.keys() - keys:
            self._prepared.pop(key).workload.close()
        self._context.device.release_cached_memory()  # a probe needs it, also after a problem that did not fit
        self._torch_settings.restore()  # what the problem set
