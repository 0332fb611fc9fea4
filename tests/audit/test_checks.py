"""Planted bad problems are found by the right check, and honest ones are not accused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inlinebench.audit.audit import audit
from inlinebench.audit.records import Flaw
from inlinebench.messages import ProblemAt

from ..running import ROOT
from .examples import HONEST, PLANTED

BUNDLED = sorted((ROOT / "problems").glob("*.py"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Uses one thread, which is enough for small tensors while other tests use the other cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def findings(path: Path, shape: str = "full") -> list[Flaw]:
    """Returns what an audit in this process finds."""
    return [each for each in audit(ProblemAt(path, shape, {}), torch.device("cpu")) if isinstance(each, Flaw)]


@pytest.mark.parametrize("name", PLANTED)
def test_a_bad_problem_is_named(tmp_path: Path, name: str) -> None:
    planted = PLANTED[name]
    found = findings(planted.write(tmp_path / f"{name}.py"))
    assert [each for each in found if each.fault and each.name == planted.finding and planted.says in each.text], found


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_problem_is_not_accused(tmp_path: Path, name: str) -> None:
    found = findings(HONEST[name].write(tmp_path / f"{name}.py"))
    assert [each for each in found if each.fault] == []
    assert sorted(each.name for each in found) == sorted(HONEST[name].remarks)


@pytest.mark.slow
@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_no_bundled_problem_is_accused(path: Path) -> None:
    assert [each for each in findings(path, "small") if each.fault] == []
