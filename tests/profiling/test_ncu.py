"""Tests of reports by Nsight Compute, with a shell script in place of `ncu`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.options import Options
from inlinebench.profiling import ncu
from inlinebench.results.launches import Counters
from inlinebench.results.result import Check, Kernels, KernelShare, Result, Verdict

JOB = Evaluate("p", "s", ProblemAt(Path("/p.py"), "full", {"N": 3}), Path("/s.py"), "full")
RESULT = Result("p", "s", "full", "cuda:0", Verdict.PASSED, check=Check(1, 1e-4, "float64", "by name"))
WRITES = """echo "$*" > "$(dirname "$0")/line"
while [ "$1" != --export ]; do shift; done
echo report > "$2.ncu-rep"
shift 2
printf %s "$4" > "$(dirname "$0")/order"
"""
"""Writes a report to the requested path, and saves the command line and the request to the profiled program."""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return replace(parse(["--profile"], {}), profile=tmp_path / "profiles", cache=tmp_path)


def program(folder: Path, body: str) -> str:
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_report_is_named_after_the_evaluation(tmp_path: Path, options: Options) -> None:
    said, _ = ncu.report(program(tmp_path, WRITES), JOB, RESULT, options)
    assert str(tmp_path / "profiles" / "p-s-full.ncu-rep") in said
    order = json.loads((tmp_path / "order").read_text())
    assert (order["problem"], order["solution"], order["constants"], order["device"]) == (
        "/p.py", "/s.py", {"N": 3}, "cuda:0"
    )


PROFILED = replace(RESULT, kernels=Kernels(1.0, (KernelShare("void rows<4>(float*)", "own", 1.0, 1.0),)))
IMPORTS = f"""if [ "$1" = --import ]; then {{}}; fi
{WRITES}"""


def test_the_counters_of_a_report_are_added_to_the_result(tmp_path: Path, options: Options) -> None:
    table = r'''printf '%s\n' '"ID","Kernel Name","gpu__time_duration.sum"' '"","","ns"' '"0","rows","2,000"'; exit'''
    said, found = ncu.report(program(tmp_path, IMPORTS.format(table)), JOB, PROFILED, options)
    assert found.kernels is not None and found.kernels.top[0].counters == Counters(0.002)
    assert said.endswith("ncu --import)")
    assert '"0","rows","2,000"' in (tmp_path / "profiles" / "p-s-full.csv").read_text()


@pytest.mark.parametrize(("body", "why"), [
    ("exit 3", "status 3"), ("echo nothing; exit", "no table of metrics"),
    (r"""printf '%s\n' '"ID","Kernel Name"'; printf '"%0140000d"' 1; exit""", "field larger than"),
])
def test_a_report_whose_counters_cannot_be_read_leaves_the_result_as_it_is(
    tmp_path: Path, options: Options, body: str, why: str
) -> None:
    said, found = ncu.report(program(tmp_path, IMPORTS.format(body)), JOB, PROFILED, options)
    assert "counters could not be read" in said and why in said and found == PROFILED


def test_the_clocks_of_the_gpu_stay_as_they_are(tmp_path: Path, options: Options) -> None:
    ncu.report(program(tmp_path, WRITES), JOB, RESULT, options)
    assert " --clock-control none " in (tmp_path / "line").read_text()


def test_missing_permission_for_counters_is_explained(tmp_path: Path, options: Options) -> None:
    said, _ = ncu.report(program(tmp_path, "echo '==ERROR== ERR_NVGPUCTRPERM - no'; exit 1"), JOB, RESULT, options)
    assert "no report" in said and "administrators" in said


@pytest.mark.parametrize(("body", "expected"), [
    ("echo first; echo it broke; exit 9", "status 9: it broke"), ("exit 1", "it printed nothing"),
    ("echo fine", "status 0: fine"),  # but wrote no report
])
def test_other_failures_show_the_last_output(
    tmp_path: Path, options: Options, body: str, expected: str
) -> None:
    said, found = ncu.report(program(tmp_path, body), JOB, RESULT, options)
    assert expected in said and found == RESULT


def test_a_report_that_takes_too_long_ends_with_the_profiled_program(tmp_path: Path, options: Options) -> None:
    slow = program(tmp_path, f"sleep 100 & echo $! > {tmp_path}/profiled; wait")
    said, found = ncu.report(slow, JOB, RESULT, options, 1.0)
    assert said == "p-s-full: no report from ncu: it took longer than 1 s" and found == RESULT
    state = Path("/proc", (tmp_path / "profiled").read_text().strip(), "stat")
    assert not state.exists() or ") Z " in state.read_text()


def test_a_program_that_cannot_be_started_is_reported(tmp_path: Path, options: Options) -> None:
    assert "no report" in ncu.report(str(tmp_path / "nothing"), JOB, RESULT, options)[0]


PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.ones(3)]

def get_init_inputs():
    return []
"""
SOLUTION = """
import os
from pathlib import Path
from torch import nn
from torch.utils.cpp_extension import load_inline
from said import say

common = str(Path(__file__).resolve().parents[1] / "common")
twice = load_inline("twice", '#include "two.h"\\nat::Tensor twice(at::Tensor x) { return x * two; }',
                    functions=["twice"], extra_include_paths=[common])

class ModelNew(nn.Module):
    def forward(self, x):
        say(f"call of {x.tolist()}")
        return twice.twice(x)
"""
DRIVER = """
import runpy, sys
from pathlib import Path
import torch

def say(text):
    with open(sys.argv[2], "a") as file:
        print(text, file=file)

sys.modules["said"] = type(sys)("said")
sys.modules["said"].say = say
torch.cuda.set_device = torch.cuda.synchronize = lambda device: None
torch.cuda.profiler.start, torch.cuda.profiler.stop = (lambda: say("start")), (lambda: say("stop"))
runpy.run_module("inlinebench.profiling.one_call", run_name="__main__")
"""


@pytest.mark.slow
def test_the_second_call_is_profiled_of_a_solution_in_its_folder(tmp_path: Path, cache: Path) -> None:
    """`ncu` is a program that runs the command that it should profile, with a torch that has a GPU."""
    files = {"problem.py": PROBLEM, "driver.py": DRIVER, "solutions/p/s-1.py": SOLUTION,
             "solutions/common/two.h": "constexpr int two = 2;"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    runs = f"""while [ "$1" != --export ]; do shift; done
export=$2
"$3" {tmp_path}/driver.py "$6" {tmp_path}/said && echo report > "$export.ncu-rep\""""
    job = Evaluate("level1/p", "s-1", ProblemAt(tmp_path / "problem.py", "full", {}),
                   tmp_path / "solutions/p/s-1.py", "full")
    options = replace(parse(["--profile", str(tmp_path / "profiles")], {}), cache=cache)
    said, _ = ncu.report(program(tmp_path, runs), job, replace(RESULT, device="cpu"), options)
    assert "level1_p-s-1-full.ncu-rep" in said and "no report" not in said
    assert (tmp_path / "said").read_text().split("\n") == [
        "call of [1.0, 1.0, 1.0]", "start", "call of [1.0, 1.0, 1.0]", "stop", ""]
