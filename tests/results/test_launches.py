"""Occupancies as NVIDIA's calculator gives them."""

from __future__ import annotations

import pytest

from inlinebench.results.launches import Launched, Multiprocessors, Residency, residency

H100 = Multiprocessors(132, 2048, 32, 65536, 233472, 1024)


@pytest.mark.parametrize(("launched", "expected"), [
    (Launched(1000, 256, 32, 0), Residency(8, "threads", 1.0)),
    (Launched(1000, 256, 255, 0), Residency(1, "registers", 0.125)),
    (Launched(1000, 256, 128, 0), Residency(2, "registers", 0.25)),
    (Launched(1000, 128, 168, 0), Residency(3, "registers", 0.1875)),  # 12 warps, in threes of four
    (Launched(1000, 32, 16, 0), Residency(32, "blocks", 0.5)),
    (Launched(1000, 256, 32, 110_000), Residency(2, "shared memory", 0.25)),
    (Launched(1000, 384, 168, 200_000), Residency(1, "shared memory", 0.1875)),
    (Launched(1000, 1024, 64, 48_000), Residency(1, "registers", 0.5)),
    (Launched(1000, 33, 0, 0), Residency(32, "threads", 1.0)),
    (Launched(1000, 1, 8, 0), Residency(32, "blocks", 0.5)),
])
def test_how_many_blocks_fit_on_an_sm(launched: Launched, expected: Residency) -> None:
    assert residency(launched, H100) == expected


def test_a_block_that_fits_on_no_sm_leaves_no_occupancy() -> None:
    assert residency(Launched(1, 256, 32, 300_000), H100) == Residency(0, "shared memory", 0.0)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Launched(1, 32, -1, 0)
