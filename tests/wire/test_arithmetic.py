"""Generators are seeded as torch seeds them, and nothing is kept of it."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from inlinebench.wire.arithmetic import seed_all

SEED = 2**61 + 7


def drawn() -> tuple[float, float, float]:
    return torch.rand(()).item(), random.random(), numpy.random.rand()


def test_every_generator_begins_anew() -> None:
    seed_all(SEED)
    first = drawn()
    assert drawn() != first
    seed_all(SEED)
    assert drawn() == first


def test_torch_draws_what_it_draws_after_its_own_function() -> None:
    seed_all(SEED)
    ours = torch.rand(8)
    torch.manual_seed(SEED)
    assert torch.equal(ours, torch.rand(8))


def test_nothing_is_kept_for_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("torch.manual_seed keeps a traceback for each of these")

    monkeypatch.setattr(torch.xpu, "manual_seed_all", refuse)
    seed_all(SEED)
    with pytest.raises(AssertionError, match="keeps a traceback"):
        torch.manual_seed(SEED)


@pytest.mark.gpu
def test_a_gpu_s_generator_is_seeded_too() -> None:
    seed_all(SEED)
    first = torch.rand(8, device="cuda")
    assert not torch.equal(first, torch.rand(8, device="cuda"))
    seed_all(SEED)
    assert torch.equal(first, torch.rand(8, device="cuda"))
