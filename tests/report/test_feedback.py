"""Tests of the feedback: it is short, safe for a terminal, and has the important facts for each verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.terminal.feedback import CUT, MOST_CHARACTERS, MOST_LINES, feedback
from inlinebench.report.terminal.log_end import end_of_log
from inlinebench.results.launches import Counters, Launched, Multiprocessors
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Check, Element, Environment, Kernels, KernelShare, PassKernels, Result, Verdict
from inlinebench.results.times import Baseline, PassTimes, Roofline, Spread, Timing

from ..hostile import faults
from .samples import FAILURES, SLOW, any_result, check, mismatch, result, timing

REASON = """\
cuda_sources:5:24: error: identifier "y" is undefined
    5 |     if (i < n) out[i] = y[i] * 2.0f
      |                         ^
cuda_sources:9: error: no instance of overloaded function "atomicAdd" matches the argument list
  argument types are: (const float *, double)
    9 |   atomicAdd(x, 1.0);
and 2 more errors"""
TRACEBACK = """\
building
Traceback (most recent call last):
  File "a/harness/inlinebench/candidate/candidate.py", line 90, in _answer
    return dict(operation(request))
                ^^^^^^^^^^^^^^^^^^
  File "a/solutions/p/s.py", line 8, in forward
    raise RuntimeError("no tile fits")
    ~~~~~^^^^
  File "a/torch/nn/functional.py", line 3, in f
    call()
RuntimeError: no tile fits
and the next line
"""


def lines_of(found: Result) -> list[str]:
    return feedback(found).splitlines()


@given(any_result())
def test_any_result_gives_a_few_printable_lines(found: Result) -> None:
    text = feedback(found)
    assert str(found.verdict) in text.splitlines()[0]
    assert len(text) <= MOST_CHARACTERS and len(text.splitlines()) <= MOST_LINES
    assert all(line.strip() for line in text.split("\n")) and faults(text) == []
    text.encode()


@given(any_result(), st.integers(20, 120))
def test_on_a_terminal_lines_are_wrapped_between_words(found: Result, width: int) -> None:
    plain, wrapped = feedback(found), feedback(found, width)
    assert [word for word in wrapped.split() if word != "|"] == [word for word in plain.split() if word != "|"]
    assert faults(wrapped) == []
    assert all(line.strip() for line in wrapped.split("\n"))


def test_a_wrapped_pattern_goes_on_below_its_text() -> None:
    found = result("p/s", Verdict.WRONG, mismatch=mismatch(patterns=("every element of the row is off by one",)))
    assert "  - every element of the\n    row is off by one" in feedback(found, 26)


def test_a_wrapped_reason_stays_a_quotation_and_code_stays_as_it_is() -> None:
    text = feedback(result("p/s", Verdict.WRONG, reason="a race on s in kernel k\n    s[threadIdx.x] = 1; // no"), 22)
    assert "  | a race on s in\n  |   kernel k\n  |     s[threadIdx.x] = 1; // no" in text


def test_a_race_is_shown_without_the_frames_of_the_harness() -> None:
    log = ('Traceback (most recent call last):\n  File "/lib/inlinebench/candidate/calls.py", line 1, in _forward\n'
           '    return model(x)\n           ^^^^^\n  File "race.py", line 19, in forward\n    return m.f(x)\n'
           'RuntimeError: data race on `s`\n')
    found = feedback(result("p/s", Verdict.WRONG, reason="RuntimeError: data race on `s` (race.py, line 19)", log=log))
    assert "race.py" in found and "return m.f(x)" in found and "candidate/calls.py" not in found


@pytest.mark.parametrize("verdict", FAILURES)
def test_every_failure_shows_its_reason(verdict: Verdict) -> None:
    assert "no tile fits\x1b[2J"[:12] in feedback(result(verdict=verdict, reason="no tile fits\x1b[2J"))


def test_untrusted_text_cannot_move_the_cursor() -> None:
    nasty = "\x1b[2J\x1b]0;title\x07evil\r\x08\nnext"
    element = Element((2, 0), nasty, nasty)
    found = mismatch(what=nasty, patterns=(nasty,), call=nasty, variant=nasty, first=(
        element, *mismatch().first[1:]), worst=element)
    for each in (
        result(nasty, Verdict.CRASHED, reason=nasty, log=nasty), result(nasty, Verdict.WRONG, mismatch=found),
        result(nasty, Verdict.BUILD_FAILED, reason=f"a{nasty}(3): error: {nasty}\n    3 | {nasty}", log=nasty),
    ):
        assert all(line.isprintable() for line in lines_of(each)) and "evil" in feedback(each)


def test_long_feedback_is_cut_at_the_end() -> None:
    many = tuple(Element((index,), "1" * 50, "2" * 50) for index in range(7))
    found = mismatch(shape=(7,), count=7, failed=7, first=many, worst=many[0], patterns=("word " * 100,) * 50)
    checked = check(notes=("note " * 100,) * 50)
    text = feedback(result("p/s", Verdict.WRONG, mismatch=found, check=checked, log="line " * 100 + "\n" * 3))
    assert len(text) <= MOST_CHARACTERS and all(len(line) <= 240 for line in text.splitlines())
    many_errors = "\n".join(f"s:1: error: {number} {'x' * 400}" for number in range(100))
    assert len(feedback(result("p/s", Verdict.BUILD_FAILED, reason=many_errors))) <= MOST_CHARACTERS
    kernels = Kernels(1.0, tuple(KernelShare("k" * 200, "own", 1.0, 0.1) for _ in range(100)))
    baselines = tuple(Baseline("b" * 300, Spread(1, 1, 1), Spread(1, 1, 1)) for _ in range(100))
    text = feedback(result("p/s", timing=replace(timing(1.0), baselines=baselines), kernels=kernels))
    assert text.endswith(CUT) and MOST_CHARACTERS - 400 < len(text) <= MOST_CHARACTERS


class TestWrong:
    FOUND = mismatch(patterns=("rows >= 2, every column: all elements of these", "every wrong value is NaN"))

    def test_it_shows_where_and_how_much_the_values_differ(self) -> None:
        text = feedback(result("gemm/fast", Verdict.WRONG, mismatch=self.FOUND, check=check(calls=3), seed=7,
                               log="printed by it"))
        assert text.splitlines() == [
            "gemm/fast (shape full, on cuda:0): wrong",
            "call 3 (inputs: negated): output, float32 [4, 4]: 8 of 16 elements differ (50 %)",
            "calls that matched before: 2",
            "largest error: not finite; tolerance 0.0001",
            "  - rows >= 2, every column: all elements of these",
            "  - every wrong value is NaN",
            "  index   expected  got",
            *(f"  [{row}, {column}]  1.5       nan" for row, column in
              [(2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 1), (3, 2)]),
            "weights: by name; oracle: float64",
            "--seed 7 draws the same inputs again",
            "the end of the log:",
            "  | printed by it",
        ]

    def test_the_worst_element_is_marked_and_comes_after_the_first_ones(self) -> None:
        worst = Element((3, 3), "-1.25", "9")
        lines = lines_of(result(verdict=Verdict.WRONG, mismatch=replace(self.FOUND, worst=worst, worst_error=2.5)))
        assert "largest error: 2.5e+04 times the limit of its element; tolerance 0.0001" in lines
        assert [line for line in lines if "worst" in line] == ["  [3, 3]  -1.25     9  (worst)"]

    def test_exact_dtypes_and_complete_failures_have_their_own_wording(self) -> None:
        one = Element((), "3", "4")
        found = mismatch(dtype="int64", shape=(), count=1, failed=1, first=(one,), worst=one, tolerance=0.0,
                         worst_error=1.0, patterns=(), call=None, variant=None)
        lines = lines_of(result(verdict=Verdict.WRONG, mismatch=found))
        assert lines[1:3] == [
            "output, int64 []: its one element differs", "largest difference: 1; elements must be equal"]
        whole = mismatch(failed=16, first=tuple(Element((0, i), "1", "2") for i in range(4)) + tuple(
            Element((1, i), "1", "2") for i in range(3)), worst=Element((0, 0), "1", "2"))
        assert "all 16 elements differ" in feedback(result(verdict=Verdict.WRONG, mismatch=whole))

    def test_a_reason_that_is_not_about_values_is_shown(self) -> None:
        reason = "an output has shape [48, 96]; the reference's has [96, 48]"
        assert lines_of(result(verdict=Verdict.WRONG, reason=reason))[1:] == [f"  | {reason}"]


class TestBuildFailed:
    def test_compiler_errors_are_quoted_without_the_log(self) -> None:
        lines = lines_of(result(verdict=Verdict.BUILD_FAILED, reason=REASON, log="nvcc said all this\n" + TRACEBACK))
        assert lines[1:] == [
            *(f"  | {line}" for line in REASON.splitlines()),
            "Line numbers refer to the strings passed as cpp_sources and cuda_sources, counted from 1.",
        ]

    def test_an_error_without_a_line_shows_the_end_of_the_compiler_output(self) -> None:
        found = result(verdict=Verdict.BUILD_FAILED, reason="no nvcc on PATH", log="one\n\ntwo\n" + TRACEBACK)
        assert lines_of(found)[1:] == [
            "  | no nvcc on PATH", "the end of the log:", "  | one", "  | two", "  | building"]


class TestCrashed:
    def test_it_shows_the_end_of_the_traceback_without_the_harness_frames(self) -> None:
        found = result(verdict=Verdict.CRASHED, reason="RuntimeError: no tile fits", log=TRACEBACK, seed=3,
                       check=check(calls=4))
        assert lines_of(found)[1:] == [
            "  | RuntimeError: no tile fits",
            "calls that matched before: 4",
            "--seed 3 draws the same inputs again",
            "the end of the log:",
            "  | Traceback (most recent call last):",
            '  |   File "a/solutions/p/s.py", line 8, in forward',
            '  |     raise RuntimeError("no tile fits")',
            '  |   File "a/torch/nn/functional.py", line 3, in f',
            "  |     call()",
            "  | RuntimeError: no tile fits",
            "  | and the next line",
        ]

    def test_without_a_traceback_it_shows_the_last_output(self) -> None:
        log = "\n".join(f"line {number}" for number in range(100))
        lines = lines_of(result(verdict=Verdict.TIMED_OUT, reason="no answer within 8 s", log=log))
        assert lines[1] == "  | no answer within 8 s"
        assert lines[-1] == "  | line 99" and len(lines) < 25

    def test_for_a_wrong_result_it_shows_the_end_of_the_log_rather_than_a_traceback(self) -> None:
        assert end_of_log(TRACEBACK + "later", 3, 80, traceback=False)[-1] == "later"
        assert end_of_log("", 3, 80, traceback=True) == []


def test_a_solution_without_its_own_kernel_shows_why_and_what_to_do() -> None:
    found = result(verdict=Verdict.NO_OWN_KERNEL, reason="no kernel of its own ran", check=check(calls=25),
                   kernels=Kernels(0.0, (KernelShare("gemm", "library", 0.25, 1.0),)))
    lines = lines_of(found)
    assert lines[1:3] == ["  | no kernel of its own ran", "calls that matched before: 25"]
    assert lines[3].startswith("What to do: ")
    assert lines[-1] == "  0.250 ms  100.0%  library  gemm"


class TestPassed:
    TIMES = replace(
        timing(2.0, 0.0629), wall_ms=Spread(0.07, 0.069, 0.071), roofline=Roofline(1000, 10, 0.0411, 0.01, "memory"),
        baselines=(Baseline("compile", Spread(0.08, 0.079, 0.081), Spread(1.27, 1.26, 1.28)),), flags=("noisy",),
    )
    KERNELS = Kernels(0.98, tuple(KernelShare(f"k{number}", "own", 0.01, 0.1) for number in range(8)))
    CHECK: Check = check(worst_error=3.1e-7, notes=("converted",))

    def test_it_shows_times_roofline_kernels_flags_and_notes(self) -> None:
        assert lines_of(result("gemm/fast", timing=self.TIMES, kernels=self.KERNELS, check=self.CHECK)) == [
            "gemm/fast (shape full, on cuda:0): passed",
            "speedup over the reference: 2.00 [1.98, 2.02]",
            "speedup over compile: 1.27 [1.26, 1.28] (0.0800 ms [0.0790, 0.0810])",
            "solution: 0.0629 ms [0.0623, 0.0635]; reference: 0.126 ms [0.125, 0.127] "
            "(medians with quartiles over 50 calls)",
            "in a Python loop, including launches: 0.0700 ms [0.0690, 0.0710]",
            "roofline: 0.0411 ms, bound by memory; the solution reaches 65.3% of it",
            "  memory: 1000 bytes, 0.0411 ms; compute: 10 operations, 0.0100 ms",
            "own kernels: 98.0% of the GPU's time in a call",
            *(f"  0.0100 ms  10.0%  own  k{number}" for number in range(5)),
            "values: 55 calls matched, largest error 3.1e-07, tolerance 0.0001",
            "weights: by name; oracle: float64",
            "flag: noisy",
            "note: converted",
        ]

    def test_the_first_thing_that_it_says_is_that_the_library_is_faster(self) -> None:
        one = Spread(1.0, 1.0, 1.0)
        times = replace(self.TIMES, baselines=(Baseline("library", one, Spread(0.85, 0.8, 0.9)),))
        assert lines_of(result("gemm/fast", timing=times))[1:4] == [
            "slower than the library solution: 0.850 [0.800, 0.900] times as fast",
            "speedup over the reference: 2.00 [1.98, 2.02]",
            "speedup over library: 0.850 [0.800, 0.900] (1.00 ms [1.00, 1.00])",
        ]

    def test_it_shows_the_first_call_apart_from_the_others(self) -> None:
        lines = lines_of(result("gemm/fast", timing=replace(self.TIMES, first_call_ms=812.3, load_ms=35.04)))
        assert "first call in the process, by the host: 812 ms; loading the solution: 35.0 ms" in lines
        lines = lines_of(result("gemm/fast", timing=replace(self.TIMES, first_call_ms=812.3)))
        assert "first call in the process, by the host: 812 ms" in lines

    def test_it_shows_the_memory_of_a_call(self) -> None:
        text = "memory of a call beyond inputs, outputs and weights: "
        lines = lines_of(result("gemm/fast", memory=Memory(100 * MIB, 32 * MIB)))
        assert f"{text}100 MiB; reference: 32.0 MiB" in lines
        lines = lines_of(result("gemm/fast", memory=Memory(100 * MIB, 0, 64 * MIB)))
        assert f"{text}100 MiB, of which 64.0 MiB are not from PyTorch's allocator; reference: 0 MiB" in lines
        assert not any(line.startswith(text) for line in lines_of(result("gemm/fast")))

    def test_times_on_the_cpu_are_not_shown(self) -> None:
        text = feedback(result("gemm/fast", timing=self.TIMES, device="cpu"))
        assert " ms" not in text and "No speedup on the CPU" in text

    def test_without_times_only_the_values_are_shown(self) -> None:
        assert lines_of(result("gemm/fast"))[1:] == [
            "values: 55 calls matched, largest error 3.1e-07, tolerance 0.0001", "weights: by name; oracle: float64"]


def test_feedback_has_the_times_of_each_pass() -> None:
    one = Spread(1.0, 1.0, 1.0)
    passes = (PassTimes("forward", one, Spread(0.5, 0.5, 0.5), Spread(2.0, 1.9, 2.1), (Baseline("compile", one, one),)),
              PassTimes("backward", one, one, one))
    text = feedback(result("p/s", backward=True, timing=Timing(one, one, one, passes=passes)))
    assert ("  forward alone: speedup 2.00 [1.90, 2.10], 1.00 [1.00, 1.00] over compile; solution 0.500 ms "
            "[0.500, 0.500], reference 1.00 ms [1.00, 1.00]") in text.split("\n")
    assert "  backward alone: speedup 1.00 [1.00, 1.00]; solution" in text


def test_feedback_says_that_a_call_had_a_backward() -> None:
    assert ", on cuda:0, forward and backward): passed" in lines_of(result("p/s", backward=True))[0]
    assert "backward" not in lines_of(result("p/s"))[0]


def test_feedback_splits_the_time_between_forward_and_backward() -> None:
    passes = (PassKernels("forward", 0.25, 1.0), PassKernels("backward", 0.5, 0.0))
    lines = lines_of(result("p/s", backward=True, kernels=Kernels(0.3, (), passes), speedup=2.0))
    assert "  forward: 0.25 ms, 100.0% in own kernels" in lines
    assert "  backward: 0.5 ms, 0.0% in own kernels" in lines


def test_feedback_says_why_a_kernel_is_slow_and_how_it_was_launched() -> None:
    sm = Multiprocessors(132, 2048, 32, 65536, 233472, 1024)
    counters = Counters(0.9, dram_share=0.12, local_bytes=600_000_000, stall="long_scoreboard", stall_share=0.55)
    share = KernelShare("rows(float*)", "own", 1.0, 1.0, 2, Launched(4096, 256, 255, 1024), counters)
    lines = lines_of(result("p/s", timing=SLOW, kernels=Kernels(1.0, (share,)),
                            environment=Environment("2.11", "0.4", multiprocessors=sm)))
    assert ("why it is slow: spills: 100% of the time goes to `rows`, which moves 600,000,000 bytes between "
            "registers and local memory: spilled registers, or arrays whose indices are not known at compile time."
            ) in lines
    assert any(line.startswith("  What to do: Use fewer registers") for line in lines)
    assert ("    2 launches; 4,096 x 256 threads, 255 registers, 1,024 bytes of shared memory, "
            "occupancy up to 12%; DRAM 12%, warps wait for long_scoreboard 55%") in lines
