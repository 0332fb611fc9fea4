"""Generators are seeded as torch seeds them, without torch's leak."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from inlinebench.wire.arithmetic import seed_all

SEED = 2**61 + 7


def drawn() -> tuple[float, float, float]:
    return torch.rand(()).item(), random.random(), numpy.random.rand()


def test_every_generator_is_reseeded() -> None:
    seed_all(SEED)
    first = drawn()
    assert drawn() != first
    seed_all(SEED)
    assert drawn() == first


def test_seeding_is_equivalent_to_torch_manual_seed() -> None:
    seed_all(SEED)
    ours = torch.rand(8)
    torch.manual_seed(SEED)
    assert torch.equal(ours, torch.rand(8))


def test_missing_devices_are_not_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("torch.manual_seed keeps a traceback for each of these")

    monkeypatch.setattr(torch.xpu, "manual_seed_all", refuse)
    seed_all(SEED)
    with pytest.raises(AssertionError, match="keeps a traceback"):
        torch.manual_seed(SEED)


@pytest.mark.gpu
def test_the_gpu_generator_is_seeded() -> None:
    seed_all(SEED)
    first = torch.rand(8, device="cuda")
    assert not torch.equal(first, torch.rand(8, device="cuda"))
    seed_all(SEED)
    assert torch.equal(first, torch.rand(8, device="cuda"))
