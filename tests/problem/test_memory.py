from __future__ import annotations

import pytest
import torch

from inlinebench.problem.memory import host_refuses_more_than
from inlinebench.wire.shortage import is_out_of_memory

MIB = 1 << 20


def test_allocations_above_the_limit_fail_while_it_is_set() -> None:
    with host_refuses_more_than(512 * MIB):
        torch.empty(64 * MIB, dtype=torch.uint8)
        with pytest.raises(RuntimeError) as found:
            torch.empty(4096 * MIB, dtype=torch.uint8)
    assert is_out_of_memory(found.value)
    torch.empty(4096 * MIB, dtype=torch.uint8)  # Linux grants memory that is not used


@pytest.mark.parametrize(("error", "expected"), [
    (MemoryError(), True), (torch.OutOfMemoryError("x"), True), (RuntimeError("std::bad_alloc"), True),
    (RuntimeError("shapes differ"), False), (None, False),
])
def test_out_of_memory_errors_are_recognized(error: Exception | None, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
