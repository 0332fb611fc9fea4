"""Inputs and expected results of the kernels with inline PTX of warps and blocks, `kernels/ptx_warp.cu`.

Products of floats are compared bit by bit with a model of Hopper's tensor cores in exact integers. Its rule is the one
published by Khattak and Mikaitis (arXiv 2512.07004) and by Xie et al. (arXiv 2511.10909).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from .cases import CASES, Case, D, F, Given, Rng, U, Z, blank, case, floats, ints
from .ptx_cases import words

Words = np.uint16
_BLOCKS = 3


# --- tensor cores -----------------------------------------------------------------------------------------------------


def _lanes(matrix: np.ndarray, element_bits: int) -> np.ndarray:
    """Returns the registers of a matrix with k along its rows, as lanes hold it: of a, or of the transpose of b."""
    side = max(32 // element_bits, 1)
    blocks, rows, columns = matrix.shape
    tall, across = rows // 8, columns // (4 * side)
    parts = matrix.reshape(blocks, tall, 8, across, 4, side).transpose(0, 2, 4, 3, 1, 5)
    return np.ascontiguousarray(parts).reshape(blocks * 32, -1)


def _sums(matrix: np.ndarray) -> np.ndarray:
    """Returns the elements of an accumulator, as lanes hold it."""
    blocks, rows, columns = matrix.shape
    parts = matrix.reshape(blocks, rows // 8, 8, columns // 2, 2).transpose(0, 2, 3, 1, 4)
    return np.ascontiguousarray(parts).reshape(blocks * 32, -1)


def _exponent(x: float, least: int) -> int:
    return max(int(np.frexp(x)[1]) - 1, least)


def _tensor_core(a: np.ndarray, b: np.ndarray, c: float, least: int) -> Fraction:
    """Returns the sum of products before its last rounding: all are cut off 25 bits below the largest exponent."""
    pairs = [(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x and y]
    exponents = [_exponent(x, least) + _exponent(y, least) for x, y in pairs]
    exponents += [_exponent(c, least if least > -126 else -126)] if c else []
    if not exponents:
        return Fraction(0)
    unit = Fraction(2) ** (max(*exponents, -133) - 25)
    return sum((int(Fraction(x) * Fraction(y) / unit) for x, y in pairs), int(Fraction(c) / unit)) * unit


def _cut(exact: Fraction) -> np.floating[Any]:
    near = F(float(exact))  # below 2^53 units, so the conversion to double is exact
    return np.nextafter(near, F(0)) if abs(Fraction(float(near))) > abs(exact) else near


def _expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: Any, least: int) -> np.ndarray:
    out = np.empty(c.shape, kind)
    for block, row, column in np.ndindex(*c.shape):
        exact = _tensor_core(a[block, row], b[block, column], float(c[block, row, column]), least)
        out[block, row, column] = _cut(exact) if kind == F else np.float16(float(exact))
    return out


def _values(rng: Rng, kind: torch.dtype, *shape: int) -> torch.Tensor:
    """Returns numbers of the format over a range of exponents, with some zeros and subnormal halves."""
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 3, shape)
    values[rng.random(shape) < 0.05] = 0
    values[rng.random(shape) < 0.05] *= 2.0**-14
    return torch.from_numpy(values.astype(F)).to(kind)


def _of_floats(name: str, kind: torch.dtype, k: int, sums: Any = F) -> None:
    def make(rng: Rng) -> Given:
        a, b = (_values(rng, kind, _BLOCKS, rows, k) for rows in (16, 8))
        c = (rng.standard_normal((_BLOCKS, 16, 8)) * 3).astype(sums)
        bits = 32 if kind == torch.float32 else 16
        if bits == 32:  # tf32 has the upper 19 bits
            a, b = ((v.view(torch.int32) & ~0x1FFF).view(kind) for v in (a, b))
        raw = [v.view(torch.int32 if bits == 32 else torch.int16).numpy() for v in (a, b)]
        least = -14 if kind == torch.float16 else -126
        wanted = _sums(_expected(a.double().numpy(), b.double().numpy(), c, sums, least))
        given = [_lanes(v, bits).view(U) for v in raw] + [_sums(c).view(U)]
        return [*given, np.zeros_like(given[2]), _BLOCKS], {3: wanted.view(U)}

    CASES.append(Case("ptx_warp", name, make, 0.0))


_of_floats("mma_half", torch.float16, 16)
_of_floats("mma_bfloat", torch.bfloat16, 16)
_of_floats("mma_half_short", torch.float16, 8)
_of_floats("mma_bfloat_short", torch.bfloat16, 8)
_of_floats("mma_into_half", torch.float16, 16, np.float16)
_of_floats("mma_tf32", torch.float32, 8)
_of_floats("mma_tf32_short", torch.float32, 4)


def _of_bytes(name: str, rows: int, k: int, a_kind: Any, finish: Callable[[np.ndarray], np.ndarray]) -> None:
    def make(rng: Rng) -> Given:
        a = rng.integers(0, 256, (_BLOCKS, rows, k)).astype(np.uint8).view(a_kind)
        b = rng.integers(-128, 128, (_BLOCKS, 8, k)).astype(np.int8)
        c = words(rng, _BLOCKS * rows * 8).view(Z).reshape(_BLOCKS, rows, 8)
        exact = c + np.einsum("bmk,bnk->bmn", a.astype(np.int64), b.astype(np.int64))
        given = [_lanes(v, 8).view(U) for v in (a, b)] + [_sums(c).view(U)]
        return [*given, np.zeros_like(given[2]), _BLOCKS], {3: _sums(finish(exact).astype(Z)).view(U)}

    CASES.append(Case("ptx_warp", name, make, 0.0))


_of_bytes("mma_bytes", 16, 32, np.int8, lambda exact: exact)
_of_bytes("mma_mixed_bytes", 16, 16, np.uint8, lambda exact: np.clip(exact, -(2**31), 2**31 - 1))
_of_bytes("mma_few_bytes", 8, 16, np.int8, lambda exact: exact)


@case("ptx_warp", 1e-15)
def mma_doubles(rng: Rng) -> Given:
    a, b, c = (rng.standard_normal((_BLOCKS, 8, n)) for n in (4, 4, 8))
    given = [_lanes(a, 64), _lanes(b, 64), _sums(c)]
    return [*given, np.zeros_like(given[2]), _BLOCKS], {3: _sums(c + np.einsum("bmk,bnk->bmn", a, b))}


# --- matrices of halves in shared memory ------------------------------------------------------------------------------


def _fragment(matrix: np.ndarray) -> np.ndarray:
    """Returns what each lane holds of a matrix of 8 x 8 halves."""
    return np.ascontiguousarray(matrix).view(U).ravel()


@case("ptx_warp")
def load_matrices(rng: Rng) -> Given:
    x = rng.integers(0, 65536, (4, 8, 8)).astype(Words)
    straight = [_fragment(m) for m in x]
    turned = [_fragment(m.T) for m in x]
    # x2 starts two rows down, so that each matrix begins with the third row.
    down = x.reshape(32, 8)[2:18].reshape(2, 8, 8)
    columns = [*straight, *turned, *(_fragment(m) for m in down), turned[0]]
    return [x, blank(32, 11, dtype=U)], {1: np.stack(columns, 1)}


@case("ptx_warp")
def store_matrices(rng: Rng) -> Given:
    x = rng.integers(0, 65536, (4, 8, 8)).astype(Words)
    out = np.zeros((3, 4, 8, 8), Words)
    out[0], out[1, :2], out[2, 0] = x, x[:2].transpose(0, 2, 1), x[2].T
    return [np.stack([_fragment(m) for m in x], 1), np.zeros_like(out)], {1: out}


# --- shuffles and votes -----------------------------------------------------------------------------------------------


@case("ptx_warp")
def ptx_shuffles(rng: Rng) -> Given:
    x, lane = words(rng, 32), np.arange(32)
    segment = lane & ~7
    sources = [lane ^ 5, lane - 3, lane + 2, (lane & 28) | (lane * 7 & 3), lane ^ 16]
    inside = [lane >= 0, lane >= 3, lane + 2 <= segment + 7, lane >= 0, lane >= 0]
    moved = [x[np.where(good, source, lane)] for source, good in zip(sources, inside, strict=True)]
    return [x, blank(160, dtype=U), blank(160, dtype=U)], {1: moved, 2: inside}


@case("ptx_warp")
def ptx_votes(rng: Rng) -> Given:
    x = ints(rng, 32)
    x[5] = 7
    ballot = sum(1 << lane for lane in range(32) if x[lane] > 50)
    same = [sum(1 << other for other in range(32) if x[other] % 4 == value % 4) for value in x]
    constant = [np.full(32, value) for value in (x.sum(), x.min(), 0)]
    rows = [np.full(32, ballot), np.full(32, 1), np.full(32, 0), np.full(32, 1), same, *constant, np.arange(32) == 0]
    return [x, blank(9 * 32, dtype=U)], {1: rows}


# --- asynchronous copies ----------------------------------------------------------------------------------------------


@case("ptx_warp")
def copies_of_all_sizes(rng: Rng) -> Given:
    x = rng.integers(0, 256, (32, 32)).astype(np.uint8)
    wanted = np.concatenate([x[:, :4], x[:, 8:12], x[:, :8], x[:, 16:]], 1)
    return [x, np.zeros_like(x)], {1: wanted}


@case("ptx_warp")
def copies_that_fill(rng: Rng) -> Given:
    x = rng.integers(1, 256, 64 * 16).astype(np.uint8)
    kept = np.where(np.arange(64 * 16) < 333, x, 0).reshape(64, 16)
    return [x, np.zeros_like(x), 333], {1: kept[::-1]}


@case("ptx_warp", 1e-5)
def copies_in_a_ring(rng: Rng) -> Given:
    x = floats(rng, 11, 128)
    return [x, blank(128), 11], {1: np.arange(1, 12) @ x[:, ::-1].astype(D)}


# --- barriers ---------------------------------------------------------------------------------------------------------


@case("ptx_warp", 1e-5)
def named_barriers(rng: Rng) -> Given:
    x = floats(rng, 9, 32)
    total = x[:, ::-1].sum(0, dtype=D)
    return [x, blank(128), 9], {1: np.concatenate([0 * total, total, 2 * total, 0 * total])}


@case("ptx_warp")
def counting_barriers(rng: Rng) -> Given:
    x = ints(rng, 96)
    return [x, blank(96, dtype=U)], {1: np.full(96, 2 * (x > 50).sum())}


@case("ptx_warp", 1e-5)
def phases_of_mbarriers(rng: Rng) -> Given:
    x = floats(rng, 11, 32)
    total = sum(np.roll(x[step].astype(D), -step) for step in range(11))
    return [x, blank(128), 11], {1: np.concatenate([warp * total for warp in range(4)])}


@case("ptx_warp")
def states_of_an_mbarrier(rng: Rng) -> Given:
    x = floats(rng, 128)
    return [x, blank(128)], {1: np.roll(x, -1)}


# --- all together -----------------------------------------------------------------------------------------------------


@case("ptx_warp")
def gemm_of_ptx(rng: Rng) -> Given:
    a, b = (rng.integers(-4, 5, (rows, 80)).astype(np.float16) for rows in (32, 16))
    return [a, b, blank(32, 16), 16, 80], {2: a.astype(F) @ b.astype(F).T}
