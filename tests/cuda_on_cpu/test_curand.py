"""cuRAND's generators as the cases expect them, and the distribution of their numbers. The cases themselves are checked
with the other conformance kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from .cases import D, F, blank
from .curand_cases import PHILOX_SEQUENCE, UNCHANGED_SEED, XORWOW_SEQUENCE, Generator, philox, xorwow
from .device import KERNELS, Library, build_for_cpu

_BLOCKS = 256
_GENERATORS = [(xorwow, XORWOW_SEQUENCE), (philox, PHILOX_SEQUENCE)]


def _marsaglia() -> Iterator[int]:
    """The recurrence as "Xorshift RNGs" (2003) prints it, with its initial values."""
    x, y, z, w, v, d = 123456789, 362436069, 521288629, 88675123, 5783321, 6615241
    while True:
        t = x ^ x >> 2
        x, y, z, w = y, z, w, v
        v = (v ^ v << 4 ^ t ^ t << 1) % 2**32
        d += 362437
        yield (d + v) % 2**32


def test_xorwow_is_the_published_recurrence() -> None:
    assert list(islice(xorwow(UNCHANGED_SEED, 0), 1000)) == list(islice(_marsaglia(), 1000))


@pytest.mark.parametrize(("generator", "sequence"), _GENERATORS)
def test_a_jump_equals_that_many_draws(generator: Generator, sequence: int) -> None:
    for start in (0, 3, sequence - 1, 5 * sequence):
        for draws in (1, 2, 3, 4, 5, 64, 1000):
            assert list(islice(generator(9, start), draws, draws + 5)) == list(islice(generator(9, start + draws), 5))


@pytest.mark.parametrize(("generator", "sequence"), _GENERATORS)
def test_subsequences_and_seeds_differ(generator: Generator, sequence: int) -> None:
    starts = [(seed, part * sequence) for seed in (0, 1, 2**32, 2**64 - 1) for part in (0, 1, 2, 3, 2**20)]
    assert len({tuple(islice(generator(*start), 4)) for start in starts}) == len(starts)


@pytest.fixture(scope="module", params=["xorwow_normals", "philox_normals"])
def numbers(request: pytest.FixtureRequest, build_folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Eight floats and seven doubles of many threads, as `normal_kernel` orders them."""
    library = Library(build_for_cpu(KERNELS / "curand.cu", build_folder))
    threads = _BLOCKS * 64
    after = library.call(request.param, [blank(threads, 8), blank(threads, 7, dtype=D), _BLOCKS])
    return after[0], after[1]


@pytest.mark.slow
def test_normal_numbers_have_the_moments_of_the_distribution(numbers: tuple[np.ndarray, np.ndarray]) -> None:
    floats, doubles = numbers
    for values in (*floats[:, :4].T, *doubles[:, [0, 1, 4, 5]].T):
        powers = values.astype(D)[:, None] ** [1, 2, 3, 4]
        standard_errors = np.sqrt([1, 2, 15, 96]) * len(values)**-0.5
        assert (abs(powers.mean(0) - [0, 1, 0, 3]) < 5 * standard_errors).all()
    assert floats.dtype == F and np.isfinite(floats).all() and np.isfinite(doubles).all()


@pytest.mark.slow
def test_log_normal_numbers_have_the_mean_and_deviation_given(numbers: tuple[np.ndarray, np.ndarray]) -> None:
    floats, doubles = numbers
    drawn = [(floats[:, 4:6], 0.3, 0.6), (doubles[:, 2:4], -0.3, 0.2), (floats[:, 6:], 0.1, 0.5)]
    for values, mean, deviation in drawn:
        logarithms = np.log(values.astype(D))
        error = 5 * deviation * logarithms.size**-0.5
        assert abs(logarithms.mean() - mean) < error and abs(logarithms.std() - deviation) < error


@pytest.mark.slow
def test_neighbouring_threads_are_not_correlated(numbers: tuple[np.ndarray, np.ndarray]) -> None:
    first = numbers[0][:, 0].astype(D)
    assert abs(np.mean(first[1:] * first[:-1])) < 5 * len(first)**-0.5
