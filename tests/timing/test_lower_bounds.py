from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.timing.lower_bounds import APART, Copies


@pytest.mark.parametrize("sizes", [[], [0], [16], [8, 1000, 0, 256, 4096]])
def test_tensors_are_copied_separately_and_do_not_overlap(sizes: list[int]) -> None:
    queued = list[tuple[int, int, int]]()
    clock: Any = SimpleNamespace(copy=lambda *what: queued.append(what))
    copies = Copies(clock, torch.device("cpu"), sizes)
    copies.queue()
    assert len(copies) == len(queued) and [size for _, _, size in queued] == sizes
    memory = copies.source.data_ptr()
    end = 0
    for target, source, size in queued:
        assert (source - memory) % APART == 0 and source - memory >= end
        assert target - queued[0][0] == source - memory
        end = source - memory + size
    assert end <= copies.source.numel()
