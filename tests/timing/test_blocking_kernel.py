from __future__ import annotations

from inlinebench.timing.blocking_kernel import LIMITS_MS, SYNCHRONISING_MS, BlockingLimit


def test_a_hold_that_lasted_long_enough_stays_as_it_is() -> None:
    policy = BlockingLimit()
    assert (policy.limit_ms, policy.synchronises) == (LIMITS_MS[0], False)


def test_each_hold_that_ran_out_raises_the_limit_until_the_forward_is_known_to_wait() -> None:
    policy = BlockingLimit()
    seen = []
    for _ in LIMITS_MS:
        seen.append(policy.limit_ms)
        assert not policy.synchronises
        policy.ran_out()
    assert tuple(seen) == LIMITS_MS
    assert policy.synchronises
    policy.ran_out()
    assert policy.limit_ms == SYNCHRONISING_MS, "waiting for the device is nothing to be cured by a longer hold"
