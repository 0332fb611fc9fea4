from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compare import fingerprint
from inlinebench.compare.fingerprint import Fingerprint

CPU = torch.device("cpu")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "CHUNK", 8)


@given(st.integers(0, 1023), st.integers(1, 255))
def test_every_change_of_a_byte_changes_the_sums(place: int, change: int) -> None:
    memory = torch.randint(0, 256, (1024,), dtype=torch.uint8)
    fingerprint = Fingerprint(CPU, seed=5)
    before = fingerprint.of(memory)
    memory[place] ^= change
    assert not torch.equal(fingerprint.of(memory), before)


def test_the_same_memory_has_the_same_sums(small_chunks: None) -> None:
    fingerprint = Fingerprint(CPU, seed=5)
    memory = torch.randint(0, 256, (8 * 20,), dtype=torch.uint8)
    assert torch.equal(fingerprint.of(memory), fingerprint.of(memory.clone()))
    assert len(fingerprint.of(memory)) == 3


def test_swapping_words_within_or_between_chunks_changes_the_sums(small_chunks: None) -> None:
    fingerprint = Fingerprint(CPU, seed=5)
    words = torch.arange(20)
    before = fingerprint.of(words.view(torch.uint8))
    for one, other in ((0, 1), (1, 9)):
        swapped = words.clone()
        swapped[one], swapped[other] = words[other], words[one]
        assert not torch.equal(fingerprint.of(swapped.view(torch.uint8)), before)


def test_the_sums_depend_on_the_seed() -> None:
    memory = torch.ones(64, dtype=torch.uint8)
    assert not torch.equal(Fingerprint(CPU, 1).of(memory), Fingerprint(CPU, 2).of(memory))


def test_empty_memory_has_a_sum() -> None:
    assert Fingerprint(CPU, 1).of(torch.empty(0, dtype=torch.uint8)).tolist() == [0]
