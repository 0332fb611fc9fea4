from __future__ import annotations

from inlinebench.timing.blocking_kernel import LIMITS_MS, SYNCHRONISING_MS, BlockingLimit


def test_the_limit_stays_if_the_blocking_kernel_never_ran_out() -> None:
    policy = BlockingLimit()
    assert (policy.limit_ms, policy.synchronises) == (LIMITS_MS[0], False)


def test_each_limit_that_ran_out_is_raised_until_the_forward_counts_as_synchronising() -> None:
    policy = BlockingLimit()
    seen = []
    for _ in LIMITS_MS:
        seen.append(policy.limit_ms)
        assert not policy.synchronises
        policy.ran_out()
    assert tuple(seen) == LIMITS_MS
    assert policy.synchronises
    policy.ran_out()
    assert policy.limit_ms == SYNCHRONISING_MS, "a longer limit does not help a forward that waits for the device"
