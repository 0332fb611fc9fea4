"""The requests to the probe process, and when it is restarted. The tests start no process."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.process import ProbeProcess


class Recorded(ProbeProcess):
    """Records its actions instead of starting processes."""

    def __init__(self) -> None:
        self.done: list[str] = []
        super().__init__(None)  # type: ignore[arg-type]

    def _start(self) -> None:
        self.done.append("start")

    def _restart(self) -> None:
        self.done.append("restart")

    def _ask(self, *request: object) -> None:
        assert isinstance(request[0], ProblemAt)
        self.done.append(f"ask {request[0].path.stem}")


@pytest.fixture
def process() -> Recorded:
    return Recorded()


ONE, OTHER = (ProblemAt(Path(f"{name}.py"), "full", {}) for name in ("one", "other"))


def test_beginning_the_same_probe_twice_sends_one_request(process: Recorded) -> None:
    process.begin(ONE, True)
    process.begin(ONE, True)
    assert process.done == ["start", "ask one"]


def test_beginning_another_probe_restarts_the_process(process: Recorded) -> None:
    process.begin(ONE, True)
    process.begin(OTHER, True)
    assert process.done == ["start", "ask one", "restart", "ask other"]
