"""Inputs and expected results of the kernels in `kernels/curand.cu`.

A generator is a function from a seed and a position to the words from there on. The positions of its subsequences are
the multiples of a power of 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from .cases import D, F, Given, Rng, U, blank, case

L = np.uint64
_WORD = (1 << 32) - 1
_REGISTER = 160
XORWOW_SEQUENCE = 1 << 67
PHILOX_SEQUENCE = 1 << 66
UNCHANGED_SEED = 0xF7DCEFDDAAD26B49
"""With this seed, XORWOW starts with the values that Marsaglia published."""
Words = Iterator[int]
Generator = Callable[[int, int], Words]


def _step(register: int) -> int:
    """Returns the register of XORWOW after a draw. Its lowest word is the oldest."""
    oldest, newest = register & _WORD, register >> 128
    mixed = oldest ^ oldest >> 2
    newest ^= (newest << 4) ^ mixed ^ mixed << 1
    return register >> 32 | (newest & _WORD) << 128


def _product(matrix: list[int], register: int) -> int:
    result = 0
    for bit, image in enumerate(matrix):
        if register >> bit & 1:
            result ^= image
    return result


@cache
def _power(exponent: int) -> list[int]:
    """Returns what becomes of each bit of the register in 2**exponent draws."""
    if exponent == 0:
        return [_step(1 << bit) for bit in range(_REGISTER)]
    half = _power(exponent - 1)
    return [_product(half, image) for image in half]


def xorwow(seed: int, position: int) -> Words:
    low = (seed & _WORD ^ 0xAAD26B49) * 1099087573 & _WORD
    high = (seed >> 32 ^ 0xF7DCEFDD) * 2591861531 & _WORD
    start = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
    register = sum((word & _WORD) << 32 * place for place, word in enumerate(start))
    counter = 6615241 + low + high + 362437 * position
    for exponent in range(position.bit_length()):
        if position >> exponent & 1:
            register = _product(_power(exponent), register)
    while True:
        register, counter = _step(register), counter + 362437
        yield (register >> 128) + counter & _WORD


def philox_block(counter: int, key: int) -> list[int]:
    """Returns the cipher of a counter of 128 bits."""
    a, b, c, d = (counter >> shift & _WORD for shift in (0, 32, 64, 96))
    for step in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        low, high = (key + step * 0x9E3779B9) & _WORD, ((key >> 32) + step * 0xBB67AE85) & _WORD
        a, b, c, d = second >> 32 ^ b ^ low, second & _WORD, first >> 32 ^ d ^ high, first & _WORD
    return [a, b, c, d]


def philox(seed: int, position: int) -> Words:
    while True:
        yield philox_block(position // 4, seed)[position % 4]
        position += 1


def uniform(words: Words) -> float:
    return float(F(next(words)) * F(2.0**-32) + F(2.0**-33))


def _two_words(words: Words) -> int:
    low, high = next(words), next(words)
    return high << 21 ^ low


def uniform_double(words: Words) -> float:
    return _two_words(words) * 2.0**-53 + 2.0**-54


def _normals(words: Words) -> list[float]:
    radius, angle = ((next(words) + 0.5) * 2.0**-32 for _ in range(2))
    return _box_muller(radius, angle)


def _normals_double(words: Words) -> list[float]:
    radius, angle = ((_two_words(words) + 0.5) * 2.0**-53 for _ in range(2))
    return _box_muller(radius, angle)


def _box_muller(radius: float, angle: float) -> list[float]:
    length = math.sqrt(-2 * math.log(radius))
    return [length * math.sin(2 * math.pi * angle), length * math.cos(2 * math.pi * angle)]


def _log(normals: list[float], mean: float, deviation: float) -> list[float]:
    return [math.exp(mean + deviation * value) for value in normals]


# --- words ------------------------------------------------------------------------------------------------------------


@case("curand")
def philox_known_answers(rng: Rng) -> Given:
    """The answers that Random123 publishes for philox4x32 with 10 rounds (its file kat_vectors)."""
    counters = [[0] * 4, [_WORD] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]]
    keys = [[0] * 2, [_WORD] * 2, [0xA4093822, 0x299F31D0]]
    answers = [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
               [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]]
    return [np.array(counters, U), np.array(keys, U), blank(3, 4, dtype=U), 3], {2: answers}


def _starts(rng: Rng) -> np.ndarray:
    """Returns seeds, subsequences, offsets, and how many subsequences and draws are skipped: numbers of all sizes."""
    few = [[0, 0, 0, 0, 0], [UNCHANGED_SEED, 0, 0, 0, 1], [1, 0, 3, 1, 2], [7, 1, 0, 0, 3], [7, 0, 1, 2, 0],
           [1 << 32, 2, 4, 3, 4]]
    ends = [[2**64 - 1, 2**64 - 1, 2**64 - 1, 1, 2**64 - 1], [2**63, 2**63, 2**63, 2**63, 2**63],
            [5, 2**32 - 1, 2**34 - 1, 1, 1], [5, 0, 2**64 - 6, 0, 2**64 - 1]]
    sizes = rng.integers(0, 64, (40, 5), dtype=L)
    return np.concatenate([np.array(few + ends, L), rng.integers(0, 2**64, (40, 5), dtype=L) >> sizes])


def _words(rng: Rng, generator: Generator, sequence: int) -> Given:
    starts = _starts(rng)
    expected = []
    for seed, subsequence, offset, subsequences, draws in starts.tolist():
        position = subsequence * sequence + offset
        after = position + 5 + draws
        for place in (position, after, after + 5 + subsequences * sequence):
            expected += islice(generator(seed, place), 5)
    return [starts, blank(len(starts) * 15, dtype=U), len(starts)], {1: np.array(expected, U)}


@case("curand")
def xorwow_words(rng: Rng) -> Given:
    return _words(rng, xorwow, XORWOW_SEQUENCE)


@case("curand")
def philox_words(rng: Rng) -> Given:
    return _words(rng, philox, PHILOX_SEQUENCE)


# --- distributions ----------------------------------------------------------------------------------------------------


@case("curand")
def xorwow_uniforms(rng: Rng) -> Given:
    floats, doubles = [], []
    for thread in range(64):
        words = xorwow(1234, thread * XORWOW_SEQUENCE)
        for _ in range(8):
            floats.append(uniform(words))
            doubles.append(uniform_double(words))
    return [blank(512), blank(512, dtype=D)], {0: floats, 1: doubles}


@case("curand")
def philox_uniforms(rng: Rng) -> Given:
    all_words, floats, doubles = [], [], []
    for thread in range(64):
        words = philox(99, thread * PHILOX_SEQUENCE + thread % 4)
        all_words += islice(words, 4)
        floats += [uniform(words) for _ in range(7)] + [-1.0]
        doubles.append((next(words) + 1) * 2.0**-32)
        doubles += [uniform_double(words) for _ in range(2)]
    return [blank(256, dtype=U), blank(512), blank(192, dtype=D)], {0: all_words, 1: floats, 2: doubles}


@case("curand", 1e-6)
def extreme_words(rng: Rng) -> Given:
    """Uniform numbers are greater than 0 and reach 1, so that no logarithm is infinite."""
    floats = [2.0**-33, 1.0, 2.0**-33, 1 - 2.0**-24, math.sqrt(66 * math.log(2)), 0.0]
    doubles = [2.0**-32, 1.0, 2.0**-54, 1.0]
    return [blank(6), blank(4, dtype=D)], {0: floats, 1: doubles}


def _mixed_normals(generator: Generator, sequence: int) -> Given:
    blocks = 2
    floats: list[Any] = []
    doubles: list[Any] = []
    for thread in range(64 * blocks):
        words = generator(5, thread * sequence)
        kept, kept_double = _normals(words), _normals_double(words)
        floats += [kept[0], *_normals(words), kept[1]]
        doubles += kept_double
        floats += _log(_normals(words), 0.3, 0.6)
        doubles += _log(_normals_double(words), -0.3, 0.2)
        doubles += _normals_double(words)
        floats += _log(_normals(words), 0.1, 0.5)
        doubles.append(sum(_log(_normals_double(words), 0.1, 0.5)))
    return [blank(len(floats)), blank(len(doubles), dtype=D), blocks], {0: floats, 1: doubles}


# The error of __sincosf on a GPU times the largest radius, 6.7, is 5e-6.
@case("curand", 1e-5)
def xorwow_normals(rng: Rng) -> Given:
    return _mixed_normals(xorwow, XORWOW_SEQUENCE)


@case("curand", 1e-5)
def philox_normals(rng: Rng) -> Given:
    return _mixed_normals(philox, PHILOX_SEQUENCE)


@case("curand", 1e-5)
def philox_normal4(rng: Rng) -> Given:
    expected = []
    for thread in range(32):
        words = philox(6, thread)
        expected += _normals(words) + _normals(words)
        expected += _log(_normals(words) + _normals(words), 0.1, 0.5)
    return [blank(256)], {0: expected}


# --- states -----------------------------------------------------------------------------------------------------------


@case("curand")
def states_in_memory(rng: Rng) -> Given:
    blocks = 3
    expected = np.empty((2, blocks * 64), F)
    for thread in range(blocks * 64):
        words = xorwow(42, thread * XORWOW_SEQUENCE)
        for call in range(2):
            expected[call, thread] = F(uniform(words)) + F(2) * F(uniform(words))
    return [blank(2 * blocks * 64), 42, blocks], {0: expected}


@case("curand")
def states_in_shared_memory(rng: Rng) -> Given:
    return [blank(64, dtype=U)], {0: [next(philox(63 - thread, 0)) for thread in range(64)]}
