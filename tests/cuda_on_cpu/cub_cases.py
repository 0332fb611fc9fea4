"""Inputs and expected results of the kernels in `kernels/cub_*.cu`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .cases import D, F, Given, Rng, U, Z, blank, case, floats, ints

L = np.int64


def sort_order(keys: np.ndarray, *, descending: bool = False) -> np.ndarray:
    """Returns the order of a stable sort."""
    if not descending:
        return np.argsort(keys, kind="stable")
    return len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]


def radix_number(keys: np.ndarray) -> np.ndarray:
    """Returns numbers in the order in which CUB sorts floats: zeros are equal, NaNs are beyond the infinities."""
    bits = keys.view(U).astype(L)
    bits[bits == 1 << 31] = 0
    return np.where(bits >> 31, ~bits & 0xFFFFFFFF, bits | 1 << 31)


def before(scanned: np.ndarray, start: Any) -> np.ndarray:
    """Returns an inclusive scan's results moved by one element: those of the exclusive scan."""
    return np.concatenate([[start], scanned[:-1]])


# --- blocks -----------------------------------------------------------------------------------------------------------


@case("cub_block", 1e-4)
def block_sum(rng: Rng) -> Given:
    x = floats(rng, 3, 128)
    return [x, blank(9)], {1: np.tile(x.sum(1), 3)}


@case("cub_block")
def block_reduce(rng: Rng) -> Given:
    x = ints(rng, 96, 4, high=10000)
    return [x, blank(4, dtype=Z), 70], {1: [x.max(), x.sum(), x[:70, 0].min(), x[:70, 1].sum()]}


@case("cub_block", 1e-4)
def block_mean(rng: Rng) -> Given:
    x = floats(rng, 64)
    return [x, blank(64)], {1: x - x.mean()}


@case("cub_block")
def block_arg_max(rng: Rng) -> Given:
    x = ints(rng, 5, 150, high=30).astype(F)  # the first of equal values
    return [x, blank(10, dtype=Z), 5, 150], {1: np.stack([x.argmax(1), x.argmin(1)], 1)}


@case("cub_block")
def block_scan(rng: Rng) -> Given:
    x = ints(rng, 128)
    sums = np.cumsum(x)
    minima = np.minimum.accumulate(x)
    results = [sums, before(sums, 0) + sums[-1], before(np.maximum.accumulate(np.maximum(x, 7)), 7),
               minima + 1000 * x.min()]
    return [x, blank(1536, dtype=Z)], {1: np.tile(np.concatenate(results), 3)}


@case("cub_block")
def block_scan_items(rng: Rng) -> Given:
    x = rng.integers(-2, 50, 192).astype(Z)
    x[:3] = [-1, -2, 40]

    def scan(values: np.ndarray) -> np.ndarray:
        """Returns the last number so far that is not negative, or the first number."""
        result = [values[0]]
        for value in values[1:]:
            result.append(result[-1] if value < 0 else value)
        return np.array(result)

    inclusive, seeded = scan(x), scan(np.concatenate([[5], x]))[:-1]
    results = [before(inclusive, 0), inclusive * 100 + inclusive[-1], seeded * 100 + inclusive[-1]]
    return [x, blank(576, dtype=Z)], {1: np.concatenate(results)}


@case("cub_block", 1e-3)
def block_running_sum(rng: Rng) -> Given:
    x = floats(rng, 700)
    return [x, blank(700), 700], {1: np.cumsum(x.astype(D))}


@case("cub_block")
def block_copies(rng: Rng) -> Given:
    x = ints(rng, 256)
    loaded = np.where(np.arange(256) < 201, x, -1) * 1000
    striped = np.arange(256) % 64 * 4 + np.arange(256) // 64
    blocked = loaded + np.arange(256)
    return [x, blank(1536, dtype=Z), 201], {1: np.concatenate([blocked] * 4 + [loaded + striped] + [blocked])}


@case("cub_block")
def block_exchange(rng: Rng) -> Given:
    x = ints(rng, 192)
    striped = x.reshape(3, 64).T.ravel()
    warps = x.reshape(2, 3, 32).transpose(0, 2, 1).ravel()
    scattered = x.reshape(3, 64).T.ravel()[::-1].reshape(64, 3).T.ravel()
    return [x, blank(576, dtype=Z)], {1: np.concatenate([striped, warps, scattered])}


@case("cub_block")
def block_histogram(rng: Rng) -> Given:
    x = rng.integers(0, 32, 256).astype(np.uint8)
    return [x, blank(64, dtype=U)], {1: np.tile(np.bincount(x, minlength=32), 2)}


# --- warps ------------------------------------------------------------------------------------------------------------


@case("cub_warp")
def warp_reduce(rng: Rng) -> Given:
    x = ints(rng, 3, 32)
    return [x, blank(6, dtype=Z), 20], {1: np.stack([x.sum(1), x[:, :20].max(1)], 1)}


@case("cub_warp", 1e-5)
def small_warp_reduce(rng: Rng) -> Given:
    x = floats(rng, 8, 8)
    return [x, blank(8)], {1: x.sum(1)}


@case("cub_warp")
def warp_segments(rng: Rng) -> Given:
    x, heads = ints(rng, 32), (rng.random(32) < 0.3).astype(Z)
    sums, maxima = np.full(32, 99), np.full(32, 99)
    starts = [0, *(i for i in range(1, 32) if heads[i]), 32]
    for first, last in pairwise(starts):
        sums[first], maxima[first] = x[first:last].sum(), x[first:last].max()
    return [x, heads, blank(64, dtype=Z)], {2: np.concatenate([sums, maxima])}


@case("cub_warp")
def warp_scan(rng: Rng) -> Given:
    x = ints(rng, 2, 32)
    results: list[Any] = [[], [], [], [], []]
    for row in x:
        sums, minima = np.cumsum(row), np.minimum.accumulate(row)
        results[0].append(sums * 1000 + sums[-1])
        results[1].append(before(sums, 0))
        results[2].append(before(np.maximum.accumulate(np.maximum(row, 11)), 11))
        scan = minima * 1000 + before(minima, 0)
        scan[0] = row[0]
        results[3].append(scan)
        results[4].append(np.full(32, row[5]))
    return [x, blank(320, dtype=Z)], {1: np.array(results)}


@case("cub_warp")
def warp_sort(rng: Rng) -> Given:
    x = ints(rng, 2, 96, high=40).astype(F)
    orders = np.stack([sort_order(row, descending=True) for row in x])
    values = orders + np.array([[0], [96]])
    return [x, blank(192, dtype=Z)], {0: np.take_along_axis(x, orders, 1) + 0.5, 1: values}


@case("cub_warp")
def small_warp_sort(rng: Rng) -> Given:
    x = ints(rng, 2, 32)
    expected = x.copy()
    expected[:, :27] = np.sort(x[:, :27], 1)
    return [x, 27], {0: expected}


# --- sorts ------------------------------------------------------------------------------------------------------------


def _special_floats(rng: Rng, count: int) -> np.ndarray:
    """Returns floats with equal ones, both zeros, infinities and NaNs of both signs."""
    x = rng.integers(-20, 20, count).astype(F) / 4
    x[rng.permutation(count)[:12]] = np.array([0.0, -0.0] * 3 + [np.inf, -np.inf] * 2 + [np.nan, -np.nan], F)
    return x


def _sorted(keys: np.ndarray, numbers: np.ndarray, values: Any = Z, *, descending: bool = False) -> Given:
    order = sort_order(numbers, descending=descending)
    return [keys, blank(len(keys), dtype=values)], {0: keys[order], 1: order}


@case("cub_sort")
def radix_pairs(rng: Rng) -> Given:
    x = _special_floats(rng, 320)
    return _sorted(x, radix_number(x))


@case("cub_sort")
def radix_pairs_descending(rng: Rng) -> Given:
    x = _special_floats(rng, 320)
    return _sorted(x, radix_number(x), descending=True)


@case("cub_sort")
def radix_some_bits(rng: Rng) -> Given:
    x = ints(rng, 320, high=1 << 12)
    return _sorted(x, x >> 3 & 63)


@case("cub_sort")
def radix_upper_bits(rng: Rng) -> Given:
    x = np.round(floats(rng, 320), 3)
    return _sorted(x, radix_number(x) >> 10, descending=True)


@case("cub_sort")
def radix_signed(rng: Rng) -> Given:
    x = rng.integers(-50, 50, 320).astype(Z)
    return _sorted(x, x, descending=True)


@case("cub_sort")
def radix_striped(rng: Rng) -> Given:
    x = ints(rng, 256, high=80).astype(F)
    return _sorted(x, x, L, descending=True)


def _sorted_rows(x: np.ndarray) -> Given:
    return [x], {0: np.sort(x, 1)}


@case("cub_sort")
def radix_shorts(rng: Rng) -> Given:
    return _sorted_rows(rng.integers(-30000, 30000, (2, 256)).astype(np.int16))


@case("cub_sort")
def radix_doubles(rng: Rng) -> Given:
    return _sorted_rows(rng.standard_normal((2, 256)))


@case("cub_sort")
def radix_bytes(rng: Rng) -> Given:
    return _sorted_rows(rng.integers(0, 256, (2, 256)).astype(np.uint8))


@case("cub_sort")
def radix_longs(rng: Rng) -> Given:
    return _sorted_rows(rng.integers(-(1 << 50), 1 << 50, (2, 256)))


@case("cub_sort")
def radix_top(rng: Rng) -> Given:
    x = floats(rng, 3, 230)
    order = np.argsort(-x, 1)[:, :8]
    return [x, blank(3, 8), blank(3, 8, dtype=Z), 230], {1: np.take_along_axis(x, order, 1), 2: order}


@case("cub_sort")
def merge_pairs(rng: Rng) -> Given:
    x = floats(rng, 192)
    return _sorted(x, x, L, descending=True)


@case("cub_sort")
def merge_some(rng: Rng) -> Given:
    x = ints(rng, 128)
    return [x, 101], {0: np.concatenate([np.sort(x[:101])[::-1], x[101:]])}


# --- the whole device -------------------------------------------------------------------------------------------------


@case("cub_device", 1e-4)
def device_sums(rng: Rng) -> Given:
    x = floats(rng, 3001)
    return [x, blank(4), 3001], {1: [x.astype(D).sum(), x.max(), x.min(), 0]}


@case("cub_device")
def device_reduce(rng: Rng) -> Given:
    x = rng.integers(0, 1 << 31, 777).astype(U) | U(1)
    product = 3
    for value in x:
        product = product * int(value) & 0xFFFFFFFF
    return [x, blank(1, dtype=U), 777], {1: [product]}


@case("cub_device")
def device_arg_max(rng: Rng) -> Given:
    x = ints(rng, 900).astype(F)  # the first of equal values
    return [x, blank(2), blank(2, dtype=L), 900], {1: [x.max(), x.min()], 2: [x.argmax(), x.argmin()]}


@case("cub_device")
def device_arg_max_pair(rng: Rng) -> Given:
    x = ints(rng, 900).astype(F)
    return [x, blank(2, dtype=Z), 900], {1: [x.argmax(), x.argmin()]}


@case("cub_device")
def device_scans(rng: Rng) -> Given:
    x = ints(rng, 2500)
    sums = np.cumsum(x)
    minima = before(np.minimum.accumulate(np.minimum(x, 50)), 50)
    results = [sums, before(sums, 0), np.maximum.accumulate(x), minima]
    return [x, blank(10000, dtype=Z), 2500], {1: np.concatenate(results)}


@case("cub_device")
def device_sort_keys(rng: Rng) -> Given:
    x = _special_floats(rng, 3000)
    results = [x[sort_order(radix_number(x), descending=descending)] for descending in (False, True)]
    return [x, blank(6000), 3000], {1: np.concatenate(results)}


@case("cub_device")
def device_sort_pairs(rng: Rng) -> Given:
    keys, values = ints(rng, 2000), rng.integers(0, 1 << 40, 2000)
    orders = np.concatenate([sort_order(keys), sort_order(keys >> 2 & 7, descending=True)])
    return [keys, values, blank(4000, dtype=Z), blank(4000, dtype=L), 2000], {2: keys[orders], 3: values[orders]}


@case("cub_device")
def device_sort_buffers(rng: Rng) -> Given:
    keys, values = ints(rng, 1500), ints(rng, 1500)
    order = sort_order(keys)
    arguments = [keys, blank(1500, dtype=Z), values, blank(1500, dtype=Z), blank(3000, dtype=Z), 1500]
    return arguments, {4: np.concatenate([keys[order], values[order]])}


@case("cub_device")
def device_segments(rng: Rng) -> Given:
    x, offsets = ints(rng, 500), np.array([0, 3, 100, 101, 350, 500], Z)
    parts = [x[first:last] for first, last in pairwise(offsets)]
    results = [part.sum() for part in parts] + [part.max() for part in parts]
    results += [part.argmin() for part in parts]
    return [x, offsets, blank(15, dtype=Z), blank(500, dtype=Z), 5, 500], {
        2: results,
        3: np.concatenate([np.sort(part) for part in parts]),
    }


@case("cub_device")
def device_little_storage(rng: Rng) -> Given:
    n = 1 << 20  # what fits into one tile needs no storage on a GPU
    return [floats(rng, n), blank(2), n], {1: [99, 1]}
