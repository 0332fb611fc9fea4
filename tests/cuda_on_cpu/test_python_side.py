"""In a problem's own code "cuda" means the CPU, and nowhere else in its process."""

from __future__ import annotations

import pytest
import torch

from cuda_on_cpu import cuda_is_cpu


def test_cuda_is_the_cpu_inside() -> None:
    with cuda_is_cpu():
        x = torch.rand(2, device="cuda")
        layer = torch.nn.Linear(2, 2).cuda().to("cuda:0")
        with torch.device("cuda"):
            assert torch.ones(2).device.type == "cpu"
        assert x.is_cuda and x.cuda().get_device() == 0 and x.to(torch.device("cuda")).device.type == "cpu"
        assert layer(x).device.type == "cpu" and x.pin_memory().is_pinned()
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        torch.cuda.synchronize()


def test_torch_is_unchanged_afterwards() -> None:
    before = dict(vars(torch.cuda))
    with pytest.raises(ValueError, match="planted"), cuda_is_cpu():
        raise ValueError("planted")
    assert vars(torch.cuda) == before
    assert not torch.rand(2).is_cuda and torch.rand(2).get_device() == -1
