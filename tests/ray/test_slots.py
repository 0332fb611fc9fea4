"""Which worker of a pool evaluates what, and who waits."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest

from inlinebench.errors import NoDevice
from inlinebench.ray.slots import Slots

MOST = 3
CALLERS = 20


def slots(patience: float = 60.0) -> Slots[str]:
    return Slots(["a", "b"], MOST, patience)


def work(at: Slots[str], callers: int, alone: bool = False) -> tuple[Counter[str], dict[str, int]]:
    """Makes callers evaluate at once, and returns how many each worker had, and the most that it had at a time."""
    had: Counter[str] = Counter()
    now: Counter[str] = Counter()
    most: dict[str, int] = {}
    lock = Lock()

    def evaluate(number: int) -> None:
        has_it_alone = alone and number % 2 == 0
        with at.reserved(number % 4, alone=has_it_alone) as place:
            with lock:
                had[place.worker] += 1
                now[place.worker] += 1
                most[place.worker] = max(most.get(place.worker, 0), now[place.worker])
            time.sleep(0.02)
            with lock:
                assert now[place.worker] == 1 or not has_it_alone
                now[place.worker] -= 1

    with ThreadPoolExecutor(callers) as threads:
        list(threads.map(evaluate, range(callers)))
    return had, most


def test_more_callers_than_room_wait_and_all_get_a_turn() -> None:
    had, most = work(slots(), CALLERS)
    assert sum(had.values()) == CALLERS and most == {"a": MOST, "b": MOST}


def test_as_many_callers_as_there_is_room_for_do_not_wait() -> None:
    begin = time.monotonic()
    had, _ = work(slots(), 2 * MOST)
    assert sum(had.values()) == 2 * MOST and time.monotonic() - begin < 2.0


def test_whoever_asks_for_a_worker_alone_has_it_alone_although_others_keep_coming() -> None:
    had, _ = work(slots(), CALLERS, alone=True)
    assert sum(had.values()) == CALLERS


def test_a_worker_that_has_the_problem_is_preferred_and_else_the_one_with_the_least_to_do() -> None:
    at = slots()
    with at.reserved("p") as first, at.reserved("q") as second, at.reserved("q") as third, at.reserved("r") as fourth:
        assert [each.worker for each in (first, second, third, fourth)] == ["a", "b", "b", "a"]


def test_a_worker_with_the_problem_but_no_room_is_not_waited_for() -> None:
    at = slots()
    with at.reserved("p"), at.reserved("p"), at.reserved("p"), at.reserved("p") as fourth:
        assert fourth.worker == "b"


def test_a_lost_worker_gets_nothing_until_it_is_replaced() -> None:
    at = slots()
    lost = at.places[0]
    assert at.set_ready(lost, ready=False) and not at.set_ready(lost, ready=False)  # it is replaced once
    assert set(work(at, 6)[0]) == {"b"}
    at.set_ready(lost, ready=True)
    assert set(work(at, 6)[0]) == {"a", "b"}


def test_callers_wait_for_a_replacement_but_not_for_ever() -> None:
    at = slots(patience=0.2)
    for place in at.places:
        at.set_ready(place, ready=False)
    with pytest.raises(NoDevice, match="no worker of the pool"), at.reserved("p"):
        pass
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(work, at, 1)
        time.sleep(0.05)
        at.set_ready(at.places[1], ready=True)
        assert waiting.result()[0] == {"b": 1}


def test_who_waits_for_busy_workers_has_all_the_patience_there_is() -> None:
    at = Slots(["a"], 1, patience=0.05)
    with ThreadPoolExecutor(1) as threads, at.reserved("p"):
        waiting = threads.submit(work, at, 1)
        time.sleep(0.3)
        assert not waiting.done()
        at.close()
        with pytest.raises(NoDevice, match="closed"):
            waiting.result()
