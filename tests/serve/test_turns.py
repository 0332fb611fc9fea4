"""Callers take turns, and each one's evaluations are in the order of their arrival."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from inlinebench.serve.turns import Turns


def test_owners_take_turns_and_the_order_of_each_stays() -> None:
    turns: Turns[str] = Turns()
    for each in ("a1", "a2", "a3", "b1", "c1", "b2"):
        turns.put(each[0], each)
    assert (turns.count(), turns.count("a"), turns.count("d")) == (6, 3, 0)
    assert [turns.get() for _ in range(4)] == ["a1", "b1", "c1", "a2"]
    turns.put("c", "c2")
    assert [turns.get() for _ in range(3)] == ["b2", "a3", "c2"] and turns.count() == 0


def test_who_gets_waits_until_something_waits() -> None:
    turns: Turns[int] = Turns()
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(turns.get) for _ in range(3)]
        assert not any(each.done() for each in asked)
        for number in range(3):
            turns.put("a", number)
        assert {each.result(60) for each in asked} == {0, 1, 2}
