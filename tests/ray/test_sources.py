"""The files that travel to a worker: no more than a candidate could read on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.options import Options
from inlinebench.ray import sources
from inlinebench.ray.sources import of_solution


@pytest.fixture
def job(tmp_path: Path) -> Evaluate:
    own = tmp_path / "solutions" / "p"
    (own / "deep").mkdir(parents=True)
    for path in (own / "s.py", own / "deep" / "k.ptx", own / "out.jsonl", tmp_path / "solutions" / "shared.cuh",
                 tmp_path / "secret"):
        path.write_text(path.name)
    (own / "shared.cuh").symlink_to("../shared.cuh")
    (own / "link").symlink_to("../../secret")
    (own / "nowhere").symlink_to("nothing")
    return Evaluate("p", "s", ProblemAt(tmp_path / "p.py", "full", {}), own / "s.py", "full")


def sent(job: Evaluate, tmp_path: Path, **options: object) -> dict[str, bytes]:
    assert job.solution is not None
    places = Options(solutions=tmp_path / "solutions", out=job.solution.parent / "out.jsonl", **options)  # type: ignore[arg-type]
    return {str(path.relative_to(job.solution.parent)): text for path, text in of_solution(job, places).items()}


def test_the_folder_is_sent_with_links_to_shared_files_but_not_to_others(job: Evaluate, tmp_path: Path) -> None:
    expected = {"s.py": b"s.py", "deep/k.ptx": b"k.ptx", "shared.cuh": b"shared.cuh"}
    assert sent(job, tmp_path) == expected
    assert sent(job, tmp_path, trust=True) == {**expected, "link": b"secret"}


def test_the_common_headers_are_sent(job: Evaluate, tmp_path: Path) -> None:
    common = tmp_path / "solutions" / "common"
    common.mkdir()
    (common / "sum.cuh").write_text("shared")
    assert job.solution is not None
    found = of_solution(job, Options(solutions=tmp_path / "solutions"))
    assert found[common / "sum.cuh"] == b"shared" and found[job.solution] == b"s.py"


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 1), ("MOST_BYTES", 4)])
def test_what_exceeds_the_limits_is_not_sent_but_the_solution_is(
    job: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(sources, limit, value)
    assert sent(job, tmp_path) == {"s.py": b"s.py"}


def test_a_missing_solution_sends_the_rest(job: Evaluate, tmp_path: Path) -> None:
    assert job.solution is not None
    job.solution.unlink()
    assert set(sent(job, tmp_path)) == {"deep/k.ptx", "shared.cuh"}
