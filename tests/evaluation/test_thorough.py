from __future__ import annotations

import random
from collections import Counter

import pytest

from inlinebench.evaluation.correctness.thorough import ThoroughCalls
from inlinebench.problem.variants import Variant


@pytest.mark.parametrize(("kinds", "calls"), [(7, 25), (1, 25), (3, 5), (7, 3)])
def test_one_call_of_each_kind_is_thorough_within_the_calls_that_are_certain(kinds: int, calls: int) -> None:
    variants = list(Variant)[:kinds]
    for seed in range(50):
        secret = random.Random(seed)
        chosen = ThoroughCalls(kinds, calls, secret)
        order = [each for _ in range(max(1, calls // kinds)) for each in secret.sample(variants, kinds)]
        assert Counter(each for each in order if chosen.next(each)) == Counter(variants)
        assert not any(chosen.next(each) for each in variants * 9)


def test_its_place_differs_from_seed_to_seed() -> None:
    def place(seed: int) -> int:
        chosen = ThoroughCalls(1, 25, random.Random(seed))
        return [chosen.next(Variant.PLAIN) for _ in range(25)].index(True)

    assert len({place(seed) for seed in range(100)}) > 20
