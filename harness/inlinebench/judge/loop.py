"""The judge's main loop: owns one device, and serves the scheduler's requests."""

from __future__ import annotations

import gc
import pickle
import shutil
import tempfile
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.compare.tolerance import by_sensitivity, by_size, compare
from inlinebench.compile.cache.contents import PEAKS
from inlinebench.compile.cache.folder import cache_folder
from inlinebench.evaluation.attempt import Tools
from inlinebench.evaluation.baselines import Baselines
from inlinebench.evaluation.candidates import Candidates
from inlinebench.evaluation.evaluation import evaluate
from inlinebench.judge import device as devices
from inlinebench.judge.derived import at_derived, last_of, smaller_ones
from inlinebench.judge.triton import LACKS_TRITON, lacks_triton
from inlinebench.messages import (
    Done,
    Evaluate,
    Hello,
    Init,
    NeedBuild,
    NeedInit,
    NeedRuntimeLibraries,
    ProblemAt,
    Settings,
    Status,
)
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.forward import is_sticky
from inlinebench.problem.memory import describe_shortage, free_bytes
from inlinebench.problem.probe.process import ProbeProcess
from inlinebench.problem.probe.records import CannotRun, ProbeResult
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Workload
from inlinebench.process.launcher import Launcher
from inlinebench.records.build_request import BuildOutcome, BuildRequest, RuntimeLibraries
from inlinebench.records.result import Environment, Result, Verdict
from inlinebench.sandbox import gpu
from inlinebench.sandbox.gpu import Gpu
from inlinebench.timing.call import Clock
from inlinebench.timing.cpu import CpuClock
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.gpu import GpuClock
from inlinebench.timing.gpu_state import GpuWatch, NoGpuState
from inlinebench.timing.peaks import Peaks, cached, key_of, measure
from inlinebench.timing.profile import CuptiTracer, Tracer, open_tracer, torch_tracer
from inlinebench.wire import bytecode
from inlinebench.wire.arithmetic import exact_arithmetic

PROGRESS_EVERY_S = 0.1
"""The interval between progress messages of the same step, in seconds."""
FREE_SHARE = 0.5
"""The share of the GPU's memory that must be free for a waiting candidate, which takes several hundred MB."""


class Judge:
    """Evaluates solutions on one device, with one workload at a time.

    Args:
        connection: to the scheduler.
        settings: the options of the run.
        device: the device.
        environment: the hardware and software, for results.
        launcher: starts candidates.
        probe: probes references.
    """

    def __init__(
        self, connection: Connection, settings: Settings, device: torch.device, environment: Environment, *,
        launcher: Launcher, probe: ProbeProcess,
    ) -> None:
        self._connection, self._settings, self._device = connection, settings, device
        self._environment, self._launcher, self._probe = environment, launcher, probe
        self._scratch = Path(tempfile.mkdtemp(prefix="inlinebench-judge-"))
        self._workload: Workload | None = None
        self._prepared: tuple[str, str, str] | None = None
        self._baselines: Baselines | None = None
        self._cannot: dict[tuple[str, str, str], CannotRun] = {}
        self._step, self._last_progress = "", 0.0
        self._own_kernels_loaded = False
        self._runtime_libraries: RuntimeLibraries | str | None = None
        self._candidates: Candidates
        self._clock: Clock = CpuClock()
        self._tracer: Tracer = torch_tracer
        self._watch = _watch(device) if settings.timing else None
        self._peaks: Peaks | None = None
        self._torch_settings = own_code.Settings()

    def serve(self) -> None:
        """Serves requests until the scheduler closes the connection, or this process becomes unusable."""
        while True:
            try:
                request = self._connection.recv()
            except EOFError:
                return
            if isinstance(request, NeedInit):
                self._connection.send(_init(request.problem))
            else:
                result, usable = self._evaluate(request)
                self._connection.send(Done(result, usable))
                if not usable:
                    return

    def close(self) -> None:
        """Ends the waiting candidate, and removes the judge's files."""
        if isinstance(self._runtime_libraries, RuntimeLibraries):
            self._candidates.end()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _evaluate(self, job: Evaluate) -> tuple[Result, bool]:
        """Returns the result, and whether this process can go on. After a CUDA error it cannot."""
        try:
            return self._judge(job), True
        except ProblemError as error:
            return self._result(job, Verdict.PROBLEM_ERROR, str(error)), "CUDA error" not in str(error)
        except Exception as error:  # noqa: BLE001
            # A bug of the harness in one evaluation must not stop the others.
            reason = f"{problem_file.describe(error)}; please report this with the log"
            result = self._result(job, Verdict.INTERNAL_ERROR, reason, log=traceback.format_exc())
            return result, not is_sticky(error)

    def _judge(self, job: Evaluate) -> Result:
        if job.solution is not None and lacks_triton(job.solution):
            return self._result(job, Verdict.SKIPPED, LACKS_TRITON)
        if self._runtime_libraries is None:
            self._runtime_libraries = self._start(job)
        if isinstance(self._runtime_libraries, str):
            return self._result(job, Verdict.BUILD_FAILED, self._runtime_libraries)
        self._candidates.prepare(job.given)  # the candidate starts while the problem is prepared
        if self._settings.holds_calls and self._device.type == "cuda":
            self._candidates.prepare_stand_in()
        try:
            prepared = self._prepare(job.problem)
        except (torch.OutOfMemoryError, MemoryError):  # no solution runs yet
            shortage = describe_shortage(None, free_bytes(self._device), self._device)
            return self._result(job, Verdict.SKIPPED, shortage)
        if isinstance(prepared, CannotRun):
            verdict = Verdict.PROBLEM_ERROR if prepared.own_fault else Verdict.SKIPPED
            return self._result(job, verdict, prepared.reason)
        tools = Tools(
            settings=self._settings, clock=self._clock, tracer=self._tracer, watch=self._watch, peaks=self._peaks,
            baselines=self._baselines, runtime_libraries=self._runtime_libraries, candidates=self._candidates,
            progress=self._report_progress,
        )
        attempt = evaluate(prepared, job, tools)
        failure = attempt.failure
        result = Result(
            problem=job.problem_name, solution=job.solution_name, shape=job.shape_name, device=str(self._device),
            verdict=failure.verdict if failure else Verdict.PASSED, reason=failure.reason if failure else "",
            check=attempt.check, timing=None if failure else attempt.timing, kernels=attempt.kernels,
            build=attempt.build, protections=() if self._settings.sanitize else self._settings.sandbox.protections,
            seed=self._settings.seed, environment=self._environment, log=attempt.log or None,
            mismatch=failure.mismatch if failure else None,
        )
        return at_derived(result, prepared.problem.constants) if job.problem.alternatives else result

    def _result(self, job: Evaluate, verdict: Verdict, reason: str, log: str | None = None) -> Result:
        return Result(
            problem=job.problem_name, solution=job.solution_name, shape=job.shape_name, device=str(self._device),
            verdict=verdict, reason=reason, seed=self._settings.seed, environment=self._environment, log=log,
        )

    def _prepare(self, problem: ProblemAt) -> Workload | CannotRun:
        if self._workload is not None and self._prepared == problem.key:
            return self._workload
        if problem.key in self._cannot:
            return self._cannot[problem.key]
        self._close_workload()
        self._report_progress("preparing the problem")
        at, probed = self._probed(problem)
        if isinstance(probed, CannotRun):
            self._cannot[problem.key] = probed
            return probed
        if self._settings.timing:
            self._candidates.settle()
        sanitized = self._settings.sanitize is not None
        workload = Workload(at, probed, self._device, self._scratch, host_arena=sanitized)
        try:
            if self._device.type == "cuda" and self._settings.timing:
                null_ms = self._peaks.null_ms if self._peaks else None
                workload.measure_costs(self._clock, null_ms)  # now, because no candidate runs or has left work behind
        except BaseException:
            workload.close()  # the next solution prepares the problem again
            raise
        self._workload, self._prepared = workload, problem.key
        if self._device.type == "cuda" and self._settings.timing and self._settings.baselines:
            self._baselines = Baselines(self._workload, self._settings.baselines, self._clock, self._report_progress)
        return self._workload

    def _probed(self, problem: ProblemAt) -> tuple[ProblemAt, ProbeResult | CannotRun]:
        """Probes a problem. Of a derived shape, returns the first constants that the reference runs with."""
        settings, todo = self._settings, [problem.constants, *problem.alternatives]
        failures: list[CannotRun] = []
        while True:
            at = replace(problem, constants=todo.pop(0), alternatives=())
            self._probe.begin(at, settings.variants, settings.memory_bytes)
            self._load_own_kernels()
            probed = self._probe.finish(settings.problem_timeout, self._report_progress)
            if not isinstance(probed, CannotRun):
                return at, probed
            failures.append(probed)
            if probed.beyond_limits:
                todo = smaller_ones(todo, at.constants)
            if probed.lacks_package or not todo:
                return at, last_of(failures)

    def _load_own_kernels(self) -> None:
        """Runs the kernels that check calls once, because CUDA loads a kernel at its first launch."""
        if self._own_kernels_loaded or self._device.type != "cuda":
            return
        self._own_kernels_loaded = True
        values = torch.ones(1 << 10, device=self._device)
        compare(values, values.clone(), None, by_size(values, 0.0))
        compare(values, values.clone(), values.double(), by_sensitivity(values.dtype, 1.0, values.double()))
        same_bits(values, values.clone())
        if not self._settings.timing and not self._probe.has_answered():
            for matrix in (values.view(32, 32), values.double().view(32, 32)):
                matrix @ matrix  # starts cuBLAS, which most references and their oracles need

    def _close_workload(self) -> None:
        if self._workload is not None:
            self._candidates.unmap()
            self._workload.close()
            self._workload = self._baselines = None
        self._torch_settings.restore()  # what the problem set

    def _start(self, job: Evaluate) -> RuntimeLibraries | str:
        """Gets the runtime libraries, creates the candidates and the clock, and measures the GPU's peaks.

        Returns the libraries, or the reason why they could not be built. Without timing, the first probe and the first
        candidate start meanwhile.
        """
        settings, problem = self._settings, replace(job.problem, alternatives=())
        if not settings.timing:
            self._probe.begin(problem, settings.variants, settings.memory_bytes)
        self._connection.send(NeedRuntimeLibraries())
        runtime_libraries: RuntimeLibraries | str = self._connection.recv()
        if not isinstance(runtime_libraries, RuntimeLibraries):
            return runtime_libraries
        self._candidates = Candidates(
            self._launcher, settings, self._device, runtime_libraries, self._build, always=(self._scratch,),
            protected=lambda: (self._probe.pid,), room=self._has_room, gpu=_under_test(self._device),
            clocked=settings.timing and self._device.type == "cuda",
        )
        if not settings.timing:
            self._candidates.prepare(job.given)
        if runtime_libraries.clock is not None:
            self._clock = GpuClock(runtime_libraries.clock, self._device.index, FlagPage())
            self._tracer = open_tracer(runtime_libraries.trace, late=not settings.timing)
            if settings.timing:
                self._measure_peaks()
        return runtime_libraries

    def _has_room(self) -> bool:
        """Whether the device has memory for a waiting candidate. Always False on the CPU, where starting takes no time.
        """
        if self._device.type != "cuda" or self._settings.sanitize is not None:
            return False
        free, whole = torch.cuda.mem_get_info(self._device)
        return free >= FREE_SHARE * whole

    def _measure_peaks(self) -> None:
        """Measures the GPU's peak rates. Call it before a problem is loaded, which might change settings of PyTorch."""
        self._report_progress("measuring the GPU's peak rates")
        device, clock = self._device, self._clock
        # Not PyTorch's profiler, which takes seconds and slows down later calls.
        tracer = self._tracer if isinstance(self._tracer, CuptiTracer) else None
        folder = cache_folder(self._settings.cache) / PEAKS
        key = replace(key_of(device), cupti=tracer is not None)
        self._peaks = cached(folder, key, lambda: measure(clock, device, tracer=tracer))
        self._environment = replace(self._environment, peaks=str(self._peaks))

    def _build(self, request: BuildRequest) -> BuildOutcome:
        self._connection.send(NeedBuild(request))
        outcome = self._connection.recv()
        assert isinstance(outcome, BuildOutcome)
        return outcome

    def _report_progress(self, text: str) -> None:
        step = text.partition(" ")[0]
        if step != self._step or time.monotonic() - self._last_progress > PROGRESS_EVERY_S:
            self._step, self._last_progress = step, time.monotonic()
            self._connection.send(Status(text))


def _init(problem: ProblemAt) -> Init:
    """Returns the constructor arguments of a problem. An evaluation of the problem fails for the same reason."""
    settings = own_code.Settings()
    try:
        module = problem_file.load_at(problem)
        return Init(pickle.dumps(problem_file.init_inputs(module)))
    except ProblemError as error:
        return Init(None, str(error))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        return Init(None, f"{problem.path}: get_init_inputs() returns a value that cannot be pickled: {error}")
    finally:
        settings.restore()  # those of the problem that is being evaluated


def _under_test(device: torch.device) -> Gpu | None:
    """Returns the GPU that candidates may use, or None on the CPU."""
    return gpu.only(str(device), str(torch.cuda.get_device_properties(device).uuid)) if device.type == "cuda" else None


def _watch(device: torch.device) -> GpuWatch | NoGpuState | None:
    """Returns a reader of the GPU's state, or the reason why it cannot be read. None on the CPU."""
    if device.type != "cuda":
        return None
    try:
        return GpuWatch(str(torch.cuda.get_device_properties(device).uuid))
    except NoGpuState as error:
        return error


def serve(connection: Connection, settings: Settings, launcher: Launcher, probe: ProbeProcess) -> int:
    """Serves the scheduler until it closes the connection. Returns the exit status."""
    launcher.sandbox = settings.sandbox
    try:
        device = devices.resolve(settings.device)
    except devices.UnusableDevice as error:
        connection.send(Hello("", devices.environment(torch.device("cpu"), settings.tf32), (), str(error)))
        return 1
    probe.use(str(device), settings.tf32)
    exact_arithmetic(tf32=settings.tf32)
    if device.type == "cuda":
        # Other processes can open what cudaMalloc allocates, by guessing small numbers, but not what these are made of.
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    own_code.report_steps(connection.send, device)
    environment = devices.environment(device, settings.tf32)
    connection.send(Hello(str(device), environment, devices.architectures(device)))
    gc.freeze()  # excludes everything loaded so far from garbage collection, which would take 0.1 s each time
    judge = Judge(connection, settings, device, environment, launcher=launcher, probe=probe)
    bytecode.leave()
    try:
        judge.serve()
    finally:
        judge.close()
    return 0
