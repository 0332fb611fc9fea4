"""What the rehearsal's process is asked, and when another one takes its place; no process is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.messages import ProblemAt
from inlinebench.problem.probe_process import ProbeProcess


class Recorded(ProbeProcess):
    """Writes down what it would do."""

    def __init__(self) -> None:
        self.done: list[str] = []
        super().__init__(None)  # type: ignore[arg-type]

    def _start(self) -> None:
        self.done.append("start")

    def _restart(self) -> None:
        self.done.append("restart")

    def _ask(self, *question: object) -> None:
        assert isinstance(question[0], ProblemAt)
        self.done.append(f"ask {question[0].path.stem}")


@pytest.fixture
def process() -> Recorded:
    return Recorded()


ONE, OTHER = (ProblemAt(Path(f"{name}.py"), "full", {}) for name in ("one", "other"))


def test_a_probe_that_was_begun_is_not_begun_again(process: Recorded) -> None:
    process.begin(ONE, True)
    process.begin(ONE, True)
    assert process.done == ["start", "ask one"]


def test_an_answer_that_nobody_waits_for_is_not_taken_for_the_next(process: Recorded) -> None:
    process.begin(ONE, True)
    process.begin(OTHER, True)
    assert process.done == ["start", "ask one", "restart", "ask other"]
