"""The secret random source: replayable, independent by purpose, uniform, and impossible to read back."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.problem.secret_random import SecretRandom


def bits(source: SecretRandom, count: int = 40) -> list[int]:
    return [source.getrandbits(62) for _ in range(count)]


def test_the_same_seed_and_purpose_give_the_same_stream() -> None:
    assert bits(SecretRandom(7, "inputs")) == bits(SecretRandom(7, "inputs"))


@pytest.mark.parametrize("other", [SecretRandom(8, "inputs"), SecretRandom(7, "public"), SecretRandom(-7, "inputs")])
def test_another_seed_or_purpose_gives_another_stream(other: SecretRandom) -> None:
    assert not set(bits(SecretRandom(7, "inputs"))) & set(bits(other))


def test_the_stream_is_keyed_blake2b_of_a_counter_and_the_purpose() -> None:
    key = hashlib.blake2b(b"7").digest()
    expected = b"".join(hashlib.blake2b(number.to_bytes(8, "big") + b"inputs", key=key).digest() for number in (0, 1))
    assert SecretRandom(7, "inputs").getrandbits(1024) == int.from_bytes(expected, "big")


@given(st.integers(), st.integers(0, 300))
def test_integers_are_in_range(seed: int, count: int) -> None:
    source = SecretRandom(seed, "law")
    assert all(0 <= source.getrandbits(count) < 1 << count for _ in range(5))
    assert all(0.0 <= source.random() < 1.0 for _ in range(5))
    assert all(0 <= source.randrange(count + 1) <= count for _ in range(5))


@pytest.mark.parametrize("count", [1, 2, 5, 62, 64])
def test_every_bit_is_set_half_of_the_time(count: int) -> None:
    source = SecretRandom(3, "bits")
    drawn = [source.getrandbits(count) for _ in range(4000)]
    for bit in range(count):
        assert 1800 < sum(number >> bit & 1 for number in drawn) < 2200  # six standard deviations


def test_reseeding_changes_nothing_and_the_state_is_not_given_away() -> None:
    source = SecretRandom(7, "inputs")
    source.seed(0)
    assert bits(source) == bits(SecretRandom(7, "inputs"))
    with pytest.raises(NotImplementedError):
        source.getstate()
    with pytest.raises(NotImplementedError):
        source.setstate(())
    with pytest.raises(ValueError, match="non-negative"):
        source.getrandbits(-1)
