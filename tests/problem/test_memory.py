from __future__ import annotations

import pytest
import torch

from inlinebench.problem.memory import host_refuses_more_than
from inlinebench.wire.shortage import is_out_of_memory

MIB = 1 << 20


def test_the_host_refuses_what_goes_beyond_the_limit_and_only_as_long_as_it_is_set() -> None:
    with host_refuses_more_than(512 * MIB):
        torch.empty(64 * MIB, dtype=torch.uint8)
        with pytest.raises(RuntimeError) as found:
            torch.empty(4096 * MIB, dtype=torch.uint8)
    assert is_out_of_memory(found.value)
    torch.empty(4096 * MIB, dtype=torch.uint8)  # promised again, though nobody uses it


@pytest.mark.parametrize(("error", "expected"), [
    (MemoryError(), True), (torch.OutOfMemoryError("x"), True), (RuntimeError("std::bad_alloc"), True),
    (RuntimeError("shapes differ"), False), (None, False),
])
def test_a_lack_of_memory_is_told_from_other_faults(error: Exception | None, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
