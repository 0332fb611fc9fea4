"""Tests how the judge prepares one problem after another, and the workloads of a set."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inlinebench.judge.problem_cache import ProblemCache
from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.records import CannotRun


def test_cached_memory_is_released_before_each_probe(tmp_path: Path) -> None:
    steps: list[str] = []
    device = SimpleNamespace(kind=SimpleNamespace(emulates_cuda=True),
                             release_cached_memory=lambda: steps.append("released"))
    probe: Any = SimpleNamespace(begin=lambda *_: steps.append("probed"), finish=lambda *_: CannotRun("does not fit"))
    context: Any = SimpleNamespace(device=device)
    settings: Any = SimpleNamespace(variants=True, memory_bytes=None, problem_timeout=1.0)
    candidates: Any = SimpleNamespace()
    problems = ProblemCache(context, settings, probe, candidates=candidates, scratch=tmp_path, progress=lambda _: None)
    for name in ("first", "second"):
        assert isinstance(problems.prepare(ProblemAt(tmp_path / f"{name}.py", "full", {})), CannotRun)
    assert steps == ["released", "probed"] * 2
