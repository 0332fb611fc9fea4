"""Every module has tests that can be found: a test file of its name, tests that import it, or an entry here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import ROOT, TESTS

HARNESS = ROOT / "harness"
TESTED_IN = {
    "api": "serve/test_serve.py", "version": "test_wheel.py",
    "audit.operators": "audit/test_checks.py", "audit.prepared": "audit/test_checks.py",
    "candidate.absent_triton": "test_honest.py", "candidate.candidate": "test_pipeline.py",
    "candidate.held_call": "candidate/test_calls.py",
    "cli.audit": "audit/test_process.py", "cli.compare": "cli/test_bad_inputs.py",
    "cli.parsing.parser": "cli/test_arguments.py", "cli.report": "cli/test_bad_inputs.py",
    "cli.run": "cli/test_arguments.py", "cli.schema": "cli/test_main.py",
    "compile.cache.store": "compile/test_cache.py",
    "devices.cpu.emulation": "cuda_on_cpu/test_python_side.py", "devices.cuda.before_call": "test_gpu.py",
    "devices.cuda.device": "test_gpu.py", "devices.cuda.launch_errors": "test_gpu.py",
    "devices.cuda.runtime": "devices/test_device_memory.py",
    "evaluation.attempt": "test_pipeline.py", "evaluation.evaluation": "test_workload_sets.py",
    "evaluation.baselines": "test_gpu.py",
    "evaluation.correctness.states": "test_pipeline.py", "evaluation.course": "test_pipeline.py",
    "evaluation.integrity.stand_ins": "evaluation/test_held_calls.py", "evaluation.loops": "test_gpu.py",
    "evaluation.requests": "test_pipeline.py",
    "judge.device_context": "test_pipeline.py", "judge.loop": "test_pipeline.py",
    "problem.probe.admission": "problem/test_probe.py",
    "problem.shapes.literals": "problem/shapes/test_derive.py",
    "process.candidate_main": "process/test_sanitizer.py",
    "process.packing": "process/test_replies.py",
    "profiling.one_call": "profiling/test_ncu.py",
    "ray.executor": "ray/test_ray.py", "ray.workers": "ray/test_pool.py",
    "options.declaration": "options/test_options.py", "options.kinds": "options/test_options.py",
    "report.mismatches": "report/test_feedback.py",
    "report.page.svg": "report/test_page_parts.py", "report.page.template": "report/test_html.py",
    "response.fences": "response/test_rules.py",
    "sandbox.landlock": "sandbox/test_sandbox.py", "sandbox.privileges": "sandbox/test_sandbox.py",
    "sandbox.refusal": "sandbox/test_sandbox.py", "sandbox.system_calls": "sandbox/test_seccomp.py",
    "scheduler.judge_client": "scheduler/test_session.py",
    "scheduler.observer": "scheduler/test_session.py",
    "serve.app": "serve/test_serve.py", "serve.client": "serve/test_serve.py",
    "serve.evaluator": "serve/test_serve.py",
    "timing.poison": "candidate/test_calls.py",
    "wire.memory_file": "wire/test_arena.py", "wire.own_python": "process/test_launcher.py",
}
"""The test file of each module that has none of its name and that no test imports."""


def modules() -> set[str]:
    package = HARNESS / "inlinebench"
    paths = (path.relative_to(package).with_suffix("") for path in package.rglob("*.py"))
    return {".".join(path.parts) for path in paths if not path.name.startswith("__")}


def imported(path: Path) -> Iterator[str]:
    """Yields what a file imports of `inlinebench`, also in Python that it has as text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (name.removeprefix("inlinebench.")
                        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))


def found_by_themselves() -> set[str]:
    """Returns the modules that have a test file of their name, or that a test file imports."""
    files = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    names = {path.stem.removeprefix("test_") for path in files}
    by_import = {name for path in files for name in imported(path)}
    return {module for module in modules() if module in by_import or module.rpartition(".")[2] in names}


def test_every_module_has_tests() -> None:
    assert modules() - found_by_themselves() - set(TESTED_IN) == set()


def test_the_list_has_only_modules_that_need_an_entry() -> None:
    assert set(TESTED_IN) - (modules() - found_by_themselves()) == set()


@pytest.mark.parametrize("file", sorted(set(TESTED_IN.values())))
def test_the_test_files_exist(file: str) -> None:
    assert (TESTS / file).is_file()
