"""Every file in `cheats/` must get the verdict and the reason that it declares.

`pytest -m gate` evaluates them on the CPU, `pytest -m gpu` on a GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Result
from inlinebench.sandbox.policy import REQUIRED
from inlinebench.sandbox.self_test import available

from .planted import Planted, evaluate_all, read_all
from .running import run_eval

ON_TWO_CPUS = ("--check", "--devices", "cpu,cpu")
CHEATS = read_all("cheats/*/*.py")
ON_CPU = [cheat for cheat in CHEATS if not cheat.needs_gpu]
TIMED = [cheat for cheat in CHEATS if cheat.shape == "full"]
CHECKED = [cheat for cheat in CHEATS if cheat.shape != "full"]


def by_name(cheat: Planted) -> str:
    return cheat.name


@pytest.fixture(scope="module")
def on_cpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(ON_CPU, tmp_path_factory.mktemp("cheats"), "--host-memory", "2", *ON_TWO_CPUS,
                        "--cache", cache)


@pytest.fixture(scope="module")
def on_gpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Evaluates the cheats at full size, which falsify times, with timing, and the others with `--check`."""
    common = ("--host-memory", "6", "--device", "cuda", "--cache", cache)
    timed = evaluate_all(TIMED, tmp_path_factory.mktemp("timed"), *common, "--min-calls", "20")
    return {**timed, **evaluate_all(CHECKED, tmp_path_factory.mktemp("checked"), *common, "--check")}


def check(cheat: Planted, results: dict[str, Result]) -> None:
    if cheat.needs_sandbox and not set(REQUIRED) <= set(available()):
        pytest.skip("this machine offers no whole sandbox")
    cheat.assert_caught(results[cheat.name])


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.parametrize("cheat", ON_CPU, ids=by_name)
def test_a_cheat_is_caught(cheat: Planted, on_cpu: dict[str, Result]) -> None:
    check(cheat, on_cpu)


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", CHEATS, ids=by_name)
def test_a_cheat_is_caught_on_a_gpu(cheat: Planted, on_gpu: dict[str, Result]) -> None:
    check(cheat, on_gpu)


@pytest.mark.slow
@pytest.mark.gate
def test_no_line_of_a_report_begins_with_foreign_text(cache: Path, tmp_path: Path) -> None:
    names = [f"matmul_diag/{cheat.name}" for cheat in CHEATS if cheat.path.stem.startswith("commands_in_")]
    for name in names:
        link = tmp_path / "solutions" / f"{name}.py"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(next(cheat.path for cheat in CHEATS if name.endswith(cheat.name)))
    run = run_eval(*names, "--solutions", tmp_path / "solutions", "--shape", "small", "--verbose",
                   *ON_TWO_CPUS, "--cache", cache, environment={"GITHUB_ACTIONS": "true"})
    assert "first line" in run.out + run.err
    for line in (run.out + run.err).splitlines():
        assert not line.lstrip().startswith(("##[", "##vso", "##teamcity", "[[ATTACHMENT", "::stop", "::add-mask"))
        assert not set("\x1b\x07\x9b\u202e\r") & set(line)


def test_there_are_enough_cheats_of_every_kind() -> None:
    families = [cheat.path.parent.name for cheat in CHEATS]
    assert len(CHEATS) >= 60 and len(set(families)) >= 15
    assert all(cheat.expected != "passed" and cheat.caught_by for cheat in CHEATS)
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)
