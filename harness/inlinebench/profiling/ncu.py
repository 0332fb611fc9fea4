"""Runs NVIDIA's Nsight Compute on one call of a solution, for `--profile`.

`inlinebench.profiling.one_call` makes the call in a separate process, outside the sandbox, because the tool must access
that process. So only passed solutions are profiled, and the profile does not affect verdicts and times.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inlinebench.messages import Evaluate
from inlinebench.options import Options
from inlinebench.profiling.counters import read, with_counters
from inlinebench.results.result import Result
from inlinebench.wire.own_python import own_python
from inlinebench.wire.processes import kill_tree

PROGRAM = "ncu"
PATIENCE_S, READING_S = 300.0, 60.0
OWN_CLOCKS = ("--clock-control", "none")
"""The GPU keeps its clocks. Otherwise ncu locks them below those of the timed calls, for all users of the GPU."""
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def program() -> str | None:
    """Returns the path of `ncu`; None if it is not installed."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/local/cuda/bin")


def report(
    ncu: str, job: Evaluate, result: Result, options: Options, patience_s: float = PATIENCE_S
) -> tuple[str, Result]:
    """Writes a report. Returns a line that says where it is, or why it failed and what to do, and the result with the
    counters of its kernels, as far as the report has them."""
    assert job.solution is not None and options.profile is not None
    name = "-".join((job.problem_name, job.solution_name, job.shape_name)).replace(os.sep, "_")
    target = options.profile / name
    options.profile.mkdir(parents=True, exist_ok=True)
    request = {
        "problem": str(job.problem.path), "shape": job.problem.shape, "constants": dict(job.problem.constants),
        "solution": str(job.solution), "given": list(map(str, job.given)), "device": result.device,
        "cache": str(options.cache.absolute()), "tf32": options.tf32, "full_headers": options.full_headers,
        "precision": job.problem.precision,
    }
    command = [ncu, "--profile-from-start", "off", "--set", "full", *OWN_CLOCKS, "--force-overwrite", "--export",
               str(target), sys.executable, "-m", "inlinebench.profiling.one_call", json.dumps(request)]
    try:
        status, said = _run(command, patience_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name}: no report from {PROGRAM}: {_short(error)}", result
    written = target.with_name(f"{target.name}.ncu-rep")
    if status == 0 and written.is_file():
        trouble, result = _with_counters(ncu, written, result)
        return f"{name}: {written} (open it with ncu-ui, or ncu --import){trouble}", result
    if NO_PERMISSION in said:
        return (f"{name}: no report from {PROGRAM}: the driver restricts the GPU's counters to administrators; see "
                f"NVIDIA's page on {NO_PERMISSION} to allow all users"), result
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "it printed nothing")
    return f"{name}: no report from {PROGRAM}, which exited with status {status}: {last}", result


def _run(command: Sequence[str], patience_s: float) -> tuple[int, str]:
    """Runs a command with the harness's modules. Returns its status and what it printed.

    Raises OSError if it cannot be started, and TimeoutExpired after `patience_s` seconds. Then the program that it
    profiles is killed as well, because it would stay on the GPU.
    """
    with subprocess.Popen(command, env={**os.environ, **own_python()}, stdin=subprocess.DEVNULL, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            said, _ = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            raise
        return process.returncode, said


def _short(error: OSError | subprocess.TimeoutExpired) -> str:
    """Returns what an error says, without the long command line."""
    return f"it took longer than {error.timeout:g} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)


def _with_counters(ncu: str, written: Path, result: Result) -> tuple[str, Result]:
    """Writes the metrics of a report to a CSV file beside it. Returns what to say if they cannot be read, and the
    result with the counters."""
    if result.kernels is None:
        return "", result
    command = [ncu, "--import", str(written), "--csv", "--page", "raw", "--print-units", "base",
               "--print-kernel-base", "function"]
    try:
        done = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=READING_S, check=True, text=True, errors="replace")
        written.with_suffix(".csv").write_text(done.stdout, encoding="utf-8")
        return "", replace(result, kernels=with_counters(result.kernels, read(done.stdout)))
    except (OSError, subprocess.SubprocessError, ValueError, csv.Error) as error:
        return f"; its counters could not be read: {error}", result
