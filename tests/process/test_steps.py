"""Tests of the time limit of a problem's steps, with a pipe in place of a process."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

import pytest

from inlinebench.process import steps
from inlinebench.process.steps import FORWARD_TO_EXPLAIN, Receiver, Step, StepTimedOut

LONG_S, SHORT_S = 600.0, 0.05
BEGUN, ENDED = Step("get_inputs()"), Step("")


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Receiver]]:
    """The sending end of a pipe, and a receiver at the other."""
    receiving, sending = Pipe(duplex=False)
    with receiving, sending:
        yield sending, Receiver(receiving)


def no_show(text: str) -> None:
    pytest.fail(f"shown: {text}")


def test_steps_are_not_among_the_received_messages(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    for message in (BEGUN, ENDED, "one", BEGUN, ENDED, "two"):
        sending.send(message)
    assert [receiver.receive(LONG_S, no_show) for _ in range(2)] == ["one", "two"]


def test_a_step_that_does_not_end_times_out_with_its_name(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    sending.send(BEGUN)
    with pytest.raises(StepTimedOut, match=r"get_inputs\(\) takes longer than 0.05 s \(--problem-timeout") as caught:
        receiver.receive(SHORT_S, lambda text: None)
    assert caught.value.step == BEGUN.name


def test_a_step_with_a_limit_of_its_own_ends_earlier_but_never_later(
    ends: tuple[Connection, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    sending, receiver = ends
    monkeypatch.setitem(steps.LIMITS_S, FORWARD_TO_EXPLAIN, SHORT_S)
    sending.send(Step(FORWARD_TO_EXPLAIN))
    for limit in (LONG_S, SHORT_S / 5):
        with pytest.raises(StepTimedOut, match=f"longer than {min(limit, SHORT_S):g} s"):
            receiver.receive(limit, lambda text: None)


def test_a_message_during_a_step_does_not_end_it(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    sending.send(BEGUN)
    sending.send("progress")
    assert receiver.receive(LONG_S, no_show) == "progress"
    with pytest.raises(StepTimedOut):
        receiver.receive(SHORT_S, lambda text: None)


def test_a_step_that_takes_long_is_shown(ends: tuple[Connection, Receiver], monkeypatch: pytest.MonkeyPatch) -> None:
    sending, receiver = ends
    monkeypatch.setattr(steps, "SHOWN_AFTER_S", SHORT_S)
    sending.send(BEGUN)
    shown = []

    def show(text: str) -> None:
        shown.append(text)
        sending.send(ENDED)
        sending.send("done")

    assert receiver.receive(LONG_S, show) == "done"
    assert shown == ["problem: get_inputs()"]


def test_between_steps_only_patience_ends_the_wait(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    sending.send(BEGUN)
    sending.send(ENDED)
    with pytest.raises(TimeoutError):
        receiver.receive(0.0, no_show, SHORT_S)


def test_steps_do_not_count_as_an_available_message(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    sending.send(BEGUN)
    assert not receiver.has_message()
    sending.send(ENDED)
    sending.send("done")
    assert receiver.has_message() and receiver.has_message()
    assert receiver.receive(LONG_S, no_show) == "done"
    assert not receiver.has_message()


def test_the_end_of_the_process_is_an_error(ends: tuple[Connection, Receiver]) -> None:
    sending, receiver = ends
    sending.send(BEGUN)
    sending.close()
    with pytest.raises(EOFError):
        receiver.receive(LONG_S, no_show)
