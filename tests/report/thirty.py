"""Thirty invented results of a run on a GPU, for tests of the page."""

from __future__ import annotations

from inlinebench.results.result import Build, Check, Environment, Kernels, KernelShare, Result, Verdict
from inlinebench.results.times import Baseline, GpuState, Roofline, Spread, Timing, binding

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
COPY_BYTES_S = 2.98e12
RATES = {"float32": 174e12, "bfloat16": 748e12, "float64": 58e12}
ENVIRONMENT = Environment(
    "2.11.0+cu130", "0.1.0", gpu="NVIDIA H100 80GB HBM3", driver="580.65.06", cuda="13.0",
    cpu="Intel(R) Xeon(R) Platinum 8480C",
    peaks="copy 2980 GB/s read and written, float32 174 TFLOP/s (3 products of float16), bfloat16 748 TFLOP/s",
)
PROBLEMS: dict[str, tuple[float, int, int, str]] = {
    # Time of the reference in ms, bytes, operations, dtype.
    "gemm_scale_batchnorm": (2.78, 268 << 20, 137438953472, "float32"),
    "matmul_diag": (2.70, 128 << 20, 0, "float32"),
    "matmul_transposed_a": (2.60, 160 << 20, 137438953472, "float32"),
    "matmul_transposed_b": (2.69, 160 << 20, 137438953472, "float32"),
    "softmax_rows": (0.412, 512 << 20, 0, "float32"),
    "layer_norm": (0.731, 1 << 30, 0, "float32"),
    "matvec": (0.405, 1 << 30, 536870912, "float32"),
    "causal_attention_with_a_name_that_is_rather_long": (1.84, 64 << 20, 68719476736, "bfloat16"),
    "batched_matmul": (0.217, 96 << 20, 137438953472, "bfloat16"),
    "cumulative_sum": (0.095, 64 << 20, 0, "float32"),
}
SPEEDUPS: dict[str, dict[str, float]] = {
    "naive": {"gemm_scale_batchnorm": 0.925, "matmul_diag": 42.8, "matmul_transposed_a": 0.0593, "softmax_rows": 0.81,
              "layer_norm": 1.12, "matvec": 0.97, "batched_matmul": 0.031, "cumulative_sum": 0.44},
    "fast": {"gemm_scale_batchnorm": 1.91, "matmul_diag": 58.1, "matmul_transposed_a": 2.07,
             "matmul_transposed_b": 2.11, "softmax_rows": 1.34, "layer_norm": 1.58, "matvec": 1.04,
             "batched_matmul": 0.93,
             "causal_attention_with_a_name_that_is_rather_long": 3.61},
    "generated_3": {"matmul_diag": 41.0, "matmul_transposed_b": 0.71, "softmax_rows": 1.002, "matvec": 1.01,
                    "layer_norm": 1.31},
}
FAILURES: dict[tuple[str, str], tuple[Verdict, str, str | None]] = {
    ("matmul_transposed_b", "naive"): (Verdict.TIMED_OUT, "60 s were not enough for 3 calls", None),
    ("causal_attention_with_a_name_that_is_rather_long", "naive"): (
        Verdict.OUT_OF_MEMORY, "an allocation of 34359738368 bytes failed", None),
    ("cumulative_sum", "fast"): (
        Verdict.WRONG, "call 7: element (131, 0) is 4.25, expected 3.75 (error 1.3e-01, allowed 1e-04)", None),
    ("gemm_scale_batchnorm", "generated_3"): (
        Verdict.BUILD_FAILED, "cuda.cu(31): error: identifier \"blockIdy\" is undefined",
        "\x1b[31mcuda.cu(31): error\x1b[0m: identifier \"blockIdy\" is undefined\n      int row = blockIdy.x;\n\n"
        "1 error detected in the compilation of \"cuda.cu\".\n" + "note: a line of the compiler's\n" * 40),
    ("matmul_transposed_a", "generated_3"): (
        Verdict.NO_OWN_KERNEL, "no kernel of its own: every kernel of a call is the library's", None),
    ("causal_attention_with_a_name_that_is_rather_long", "generated_3"): (
        Verdict.CRASHED, f"RuntimeError: {HOSTILE}", f"Traceback (most recent call last):\n  {HOSTILE}\n"),
    ("batched_matmul", "generated_3"): (Verdict.INVALID, "no class ModelNew", None),
    ("cumulative_sum", "generated_3"): (Verdict.SKIPPED, "needs 9 GiB on the device, 8 GiB are there", None),
}


def _around(median: float, share: float, calls: int | None = None) -> Spread:
    return Spread(median, median * (1 - share), median * (1 + 1.4 * share), calls)


def _passed(problem: str, solution: str, speedup: float, number: int) -> Result:
    reference_ms, moved, operations, accuracy = PROBLEMS[problem]
    solution_ms = reference_ms / speedup
    noise = 0.004 + 0.013 * (number % 5)
    memory_ms, compute_ms = moved / COPY_BYTES_S * 1e3, operations / RATES[accuracy] * 1e3
    flags = ("launch-bound: wall time is more than twice the device time",) if number % 7 == 0 else ()
    timing = Timing(
        _around(reference_ms, noise, 51), _around(solution_ms, 0.7 * noise, 50), _around(speedup, noise),
        wall_ms=_around(solution_ms + 0.011 * (number % 4 + 1), noise, 50),
        baselines=(Baseline("compile", _around(reference_ms * 0.8, noise, 51), _around(speedup * 0.8, noise)),)
        if solution == "fast" else (),
        roofline=Roofline(moved, operations, memory_ms, compute_ms, binding(memory_ms, compute_ms)),
        empty_ms=0.00128, reference_overhead_ms=0.0022, solution_overhead_ms=0.0023, stopped_by="precision",
        gpu=GpuState(Spread(1980, 1965, 1980), Spread(2619, 2619, 2619), 54.0, 50, power_w=412.0, other_processes=0),
        flags=flags,
    )
    own = 0.982 if solution != "generated_3" else 0.71
    kernels = Kernels(own, (KernelShare(f"void {problem}_kernel<float, 128>(float const*, float*)", "own",
                                        solution_ms * own, own),
                            KernelShare("Memcpy DtoD (Device -> Device)", "copy", solution_ms * (1 - own), 1 - own)))
    check = Check(57, 1e-4, "float64", "by name", 3.1e-7 * (number + 1), 2.2e-5, 6.0e-7, 5.1e-7,
                  notes=("output converted from channels_last",) if number == 3 else ())
    return Result(problem, solution, "full", "cuda:0", Verdict.PASSED, check=check, timing=timing, kernels=kernels,
                  build=Build(31.4 + number, number % 2 == 1, "slim"), protections=("landlock", "seccomp", "watchdog"),
                  seed=8034576217 + number, environment=ENVIRONMENT, log="ptxas info: 62 registers, no spills")


def thirty() -> list[Result]:
    """Returns passed and failed results of ten problems with three solution names, at one shape on one GPU."""
    passed = [
        _passed(problem, solution, speedup, number)
        for solution, speedups in SPEEDUPS.items() for number, (problem, speedup) in enumerate(speedups.items())
    ]
    failed = [
        Result(problem, solution, "full", "cuda:0", verdict, reason, environment=ENVIRONMENT, log=log, seed=17,
               build=Build(12.2, False, "slim"))
        for (problem, solution), (verdict, reason, log) in FAILURES.items()
    ]
    return passed + failed
