"""Inputs and expected results of the kernels with inline PTX that threads run for themselves, `kernels/ptx_scalar.cu`.

Integers are computed in Python's exact integers, floats in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from .cases import CASES, Case, D, F, Given, Rng, U, Z, blank, case, floats

_N = 256
L = np.int64
Q = np.uint64


def signed(x: int) -> int:
    """Returns a 32-bit word as a signed number."""
    return (x & 0xFFFFFFFF) - ((x & 0x80000000) << 1)


def words(rng: Rng, count: int = _N) -> np.ndarray:
    """Returns random words, small ones, and the ends of the ranges."""
    values = rng.integers(0, 2**32, count, dtype=np.uint64)
    values[: count // 4] = rng.integers(0, 64, count // 4)
    values[-4:] = [0, 2**31 - 1, 2**31, 2**32 - 1]
    return rng.permutation(values).astype(U)


def _of_words(name: str, compute: Callable[[int, int, int], int]) -> None:
    """Registers a launcher of `WORDS` and what it computes of three words."""

    def make(rng: Rng) -> Given:
        x, y, z = words(rng), words(rng), words(rng)
        rows = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
        return [x, y, z, blank(_N, dtype=U)], {3: [compute(*row) & 0xFFFFFFFF for row in rows]}

    CASES.append(Case("ptx_scalar", name, make, 0.0))


def _of_floats(name: str, compute: Callable[[Any, Any, Any], Any], tolerance: float = 0.0,
               given: Callable[[Rng], np.ndarray] = lambda rng: floats(rng, _N)) -> None:
    """Registers a launcher of `FLOATS` and what it computes of arrays in float64."""

    def make(rng: Rng) -> Given:
        x, y, z = given(rng), given(rng), given(rng)
        with np.errstate(all="ignore"):
            return [x, y, z, blank(_N)], {3: np.asarray(compute(*(v.astype(D) for v in (x, y, z)))).astype(F)}

    CASES.append(Case("ptx_scalar", name, make, tolerance))


def _clamp(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


def _bit_count(a: int, b: int, c: int) -> int:
    low = a.bit_count() | (32 - b.bit_length()) << 8
    return low + int(f"{low:032b}"[::-1], 2)


def _permuted(a: int, b: int, c: int) -> int:
    taken = (a | b << 32).to_bytes(8, "little")
    sign = 0xFF if taken[9 & 7] & 0x80 else 0
    return int.from_bytes(bytes([taken[0], taken[5], taken[2], sign]), "little")


def _extracted(a: int, position: int, length: int, sign: bool) -> int:
    position, length = position & 31, length & 31
    value = a >> position & (1 << length) - 1
    top = a >> max(min(position + length - 1, 31), 0) & 1
    return value - (1 << min(length, 32 - position)) if sign and length and top else value


def _dot(a: int, b: int, c: int) -> int:
    left = np.frombuffer(a.to_bytes(4, "little"), np.int8).astype(int)
    right = np.frombuffer(b.to_bytes(4, "little"), np.uint8).astype(int)
    return c + int(left @ right)


_of_words("ptx_add_sat", lambda a, b, c: _clamp(signed(a) + signed(b), -(2**31), 2**31 - 1))
_of_words("ptx_sub", lambda a, b, c: a - b)
_of_words("ptx_mul_hi_unsigned", lambda a, b, c: a * b >> 32)
_of_words("ptx_mul_hi_signed", lambda a, b, c: signed(a) * signed(b) >> 32)
_of_words("ptx_mad_lo", lambda a, b, c: a * b + c)
_of_words("ptx_mad_hi", lambda a, b, c: (a * b >> 32) + c)
_of_words("ptx_min_signed", lambda a, b, c: min(signed(a), signed(b)))
_of_words("ptx_max_unsigned", lambda a, b, c: max(a, b))
_of_words("ptx_abs_neg", lambda a, b, c: -abs(signed(a)))
_of_words("ptx_divide", lambda a, b, c: a // (b | 1) * 3 + a % (b | 1))
_of_words("ptx_logic", lambda a, b, c: ~(a & b ^ c) | 16)
_of_words("ptx_lop3", lambda a, b, c: a & b | a & c | b & c)
_of_words("ptx_lop3_constant", lambda a, b, c: a & b | c)
_of_words("ptx_lop3_predicate", lambda a, b, c: 7 if a & b & c and a < b else a & b & c)
_of_words("ptx_prmt", _permuted)
_of_words("ptx_funnel_left", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32)
_of_words("ptx_funnel_right", lambda a, b, c: (b << 32 | a) >> min(c & 63, 32))
_of_words("ptx_shift_left", lambda a, b, c: a << (c & 63))
_of_words("ptx_shift_right_signed", lambda a, b, c: signed(a) >> (c & 63))
_of_words("ptx_extract_unsigned", lambda a, b, c: _extracted(a, b, c, sign=False))
_of_words("ptx_extract_signed", lambda a, b, c: _extracted(a, b, c, sign=True))
_of_words("ptx_insert", lambda a, b, c: b & ~(0x1FF << 5) | (a & 0x1FF) << 5)
_of_words("ptx_count_bits", _bit_count)
_of_words("ptx_dot_of_bytes", _dot)


# --- predicates, jumps and moves --------------------------------------------------------------------------------------


def _combined(a: int, b: int, c: int) -> int:
    above, less = a > c, a <= b
    return (1 if less and above else 0) + (2 if not less and above else 0) + (4 if above else 0)


_of_words("ptx_select", lambda a, b, c: a if signed(a) < signed(b) else 77)
_of_words("ptx_combined_predicates", _combined)
_of_words("ptx_guard", lambda a, b, c: 5 if a & 1 else 6)
_of_words("ptx_loop", lambda a, b, c: sum(range((a & 15) + 1)))
_of_words("ptx_scopes", lambda a, b, c: 2 * a + 3)
_of_words("ptx_numbered_registers", lambda a, b, c: 3 * a)
_of_words("ptx_pack", lambda a, b, c: a >> 16 | a << 16)
_of_words("ptx_comments", lambda a, b, c: a + 3)


@case("ptx_scalar")
def ptx_wide(rng: Rng) -> Given:
    x, y = words(rng).view(Z), words(rng).view(Z)
    return [x, y, blank(_N, dtype=L)], {2: x.astype(L) * y - 3 * y.astype(L)}


@case("ptx_scalar")
def ptx_narrow(rng: Rng) -> Given:
    x, y = words(rng).astype(np.int16), words(rng).astype(np.int16)
    return [x, y, blank(_N, dtype=np.int16)], {2: (x.astype(Z) * y).astype(np.int16)}


@case("ptx_scalar")
def ptx_pairs(rng: Rng) -> Given:
    low, high = words(rng), words(rng)
    x = low.astype(Q) | high.astype(Q) << Q(32)
    swapped = high.astype(Q) | low.astype(Q) << Q(32)
    return [x, blank(_N, dtype=U), blank(_N, dtype=U), np.zeros(_N, Q)], {1: low, 2: high, 3: swapped}


@case("ptx_scalar")
def ptx_special_registers(rng: Rng) -> Given:
    block, y, x = np.meshgrid(np.arange(2), np.arange(3), np.arange(40), indexing="ij")
    return [blank(240, dtype=U)], {0: x + 100 * y + 10000 * block + 2000000}


@case("ptx_scalar")
def ptx_macros(rng: Rng) -> Given:
    x = rng.integers(0, 1000, 64).astype(U)
    return [x, blank(64, dtype=U)], {1: (x + 15) * 5 + x + 5}


# --- floats -----------------------------------------------------------------------------------------------------------


def _directed(x: float | Fraction, mode: str) -> float:
    """Returns the float next to an exact value: towards zero, down or up."""
    exact = Fraction(x)
    near = F(float(exact))
    wrong = {"zero": abs(Fraction(float(near))) > abs(exact), "down": Fraction(float(near)) > exact,
             "up": Fraction(float(near)) < exact}[mode]
    goal = {"zero": F(0), "down": F(-np.inf), "up": F(np.inf)}[mode]
    return float(np.nextafter(near, goal)) if wrong else float(near)


def _exactly(compute: Callable[[Fraction, Fraction, Fraction], Fraction], mode: str) -> Callable[[Any, Any, Any], Any]:
    def of_arrays(a: Any, b: Any, c: Any) -> Any:
        rows = zip(map(Fraction, a), map(Fraction, b), map(Fraction, c), strict=True)
        return np.array([_directed(compute(*row), mode) for row in rows])

    return of_arrays


def _with_nans(rng: Rng) -> np.ndarray:
    values = floats(rng, _N)
    values[rng.integers(0, _N, 60)] = np.nan
    return values


def _tiny(rng: Rng) -> np.ndarray:
    return (floats(rng, _N) * 1e-31 * 2.0 ** rng.integers(-6, 6, _N)).astype(F)


def _flushed(a: Any, b: Any, c: Any) -> Any:
    product = a * 2.0**-23
    return np.where(np.abs(product) < 2.0**-126, 0.0, product)


def _rounded_functions(a: Any, b: Any, c: Any) -> Any:
    root = np.sqrt(np.abs(a)).astype(F).astype(D)
    return (1 / root).astype(F).astype(D) / b


_of_floats("ptx_fma", lambda a, b, c: a * b + c)
_of_floats("ptx_fma_to_zero", _exactly(lambda a, b, c: a * b + c, "zero"))
_of_floats("ptx_add_down", _exactly(lambda a, b, c: a + b, "down"))
_of_floats("ptx_mul_up", _exactly(lambda a, b, c: a * b, "up"))
_of_floats("ptx_add_saturating", lambda a, b, c: np.clip((a + b).astype(F), 0, 1))
_of_floats("ptx_flush_to_zero", _flushed, given=_tiny)
_of_floats("ptx_immediates", lambda a, b, c: 1.5 * a + 2.5)
_of_floats("ptx_min_without_nan", lambda a, b, c: np.fmin(a, b), given=_with_nans)
_of_floats("ptx_max_with_nan", lambda a, b, c: np.maximum(a, b), given=_with_nans)
_of_floats("ptx_unordered", lambda a, b, c: ~(a >= b) * 1.0 + 2.0 * (a < b), given=_with_nans)
_of_floats("ptx_signs", lambda a, b, c: np.copysign(b, -a) + np.abs(c))
_of_floats("ptx_rounded_functions", _rounded_functions)
# What PTX promises of the approximations is 2 units in the last place or better, and 2^-11 for the hyperbolic tangent.
_of_floats("ptx_ex2", lambda a, b, c: np.exp2(a), 5e-7)
_of_floats("ptx_lg2", lambda a, b, c: np.log2((np.abs(a).astype(F) + F(1.5)).astype(D)), 1e-6)
_of_floats("ptx_rcp", lambda a, b, c: 1 / (np.abs(a).astype(F) + F(0.5)).astype(D), 5e-7)
_of_floats("ptx_rsqrt", lambda a, b, c: 1 / np.sqrt((np.abs(a).astype(F) + F(0.5)).astype(D)), 5e-7)
_of_floats("ptx_circle", lambda a, b, c: np.cos(a) + 2 * np.sin(a), 1e-5)
_of_floats("ptx_tanh", lambda a, b, c: np.tanh(a), 6e-4)
_of_floats("ptx_div_full", lambda a, b, c: a / (np.abs(b).astype(F) + F(0.5)), 1e-6)


@case("ptx_scalar", 1e-15)
def ptx_doubles(rng: Rng) -> Given:
    x, y = rng.standard_normal(_N), rng.standard_normal(_N)
    return [x, y, blank(_N, dtype=D)], {2: x * y + 1.5}


def _of_pairs(name: str, kind: torch.dtype, compute: Callable[..., torch.Tensor], tolerance: float = 0.0) -> None:
    """Registers a launcher of `WORDS` that takes words as pairs of halves, and what it computes of float64."""

    def make(rng: Rng) -> Given:
        values = [torch.from_numpy(floats(rng, 2 * _N)).to(kind) for _ in range(3)]
        result = compute(*(value.double() for value in values)).to(kind)
        sources = [value.view(torch.int16).numpy().view(U) for value in values]
        return [*sources, np.zeros(_N, U)], {3: result.view(torch.int16).numpy().view(U)}

    CASES.append(Case("ptx_scalar", name, make, tolerance))


_of_pairs("ptx_half_add", torch.float16, lambda a, b, c: a + b)
_of_pairs("ptx_half_fma", torch.float16, lambda a, b, c: (a * b + c).clamp_min(0))
_of_pairs("ptx_half_max", torch.float16, lambda a, b, c: torch.maximum(a, b))
_of_pairs("ptx_bfloat_fma", torch.bfloat16, lambda a, b, c: a * b + c)
_of_pairs("ptx_bfloat_min", torch.bfloat16, lambda a, b, c: torch.minimum(a, -b))


@case("ptx_scalar")
def ptx_half_ex2(rng: Rng) -> Given:
    x = rng.integers(-10, 10, 2 * _N).astype(np.float16)  # powers of whole numbers are exact
    ignored = np.zeros(_N, U)
    return [x.view(U), ignored, ignored, np.zeros(_N, U)], {3: np.exp2(x).view(U)}


# --- conversions ------------------------------------------------------------------------------------------------------


def _halves(x: np.ndarray, kind: torch.dtype, *, to_zero: bool = False) -> np.ndarray:
    """Returns the bits of floats as halves, rounded to nearest or cut off."""
    rounded = torch.from_numpy(x).to(kind)
    bits = rounded.view(torch.int16).numpy().view(np.uint16).copy()
    if to_zero:
        bits -= (np.abs(rounded.double().numpy()) > np.abs(x.astype(D))).astype(np.uint16)
    return bits


@case("ptx_scalar")
def ptx_pack_floats(rng: Rng) -> Given:
    x, y = floats(rng, _N) * F(100), floats(rng, _N)
    x[:3] = [1e6, -1e-7, 0]
    rows = [
        [_halves(v, torch.float16) for v in (y, x)],
        [_halves(v, torch.float16, to_zero=True) for v in (y, x)],
        [_halves(v, torch.bfloat16) for v in (y, x)],
        [_halves(np.maximum(v, F(0)), torch.bfloat16) for v in (y, x)],
    ]
    return [x, y, blank(4 * _N, dtype=U)], {2: [low | high.astype(U) << U(16) for low, high in rows]}


@case("ptx_scalar")
def ptx_small_floats(rng: Rng) -> Given:
    x = floats(rng, _N) * F(3)
    half, bfloat = _halves(x, torch.float16), _halves(x, torch.bfloat16, to_zero=True)
    back = [half.view(np.float16).astype(F), (bfloat.astype(U) << U(16)).view(F)]
    return [x, np.zeros(2 * _N, np.uint16), blank(2 * _N)], {1: [half, bfloat], 2: back}


@case("ptx_scalar")
def ptx_to_tf32(rng: Rng) -> Given:
    x = floats(rng, _N)
    x[:16].view(U)[:] = x[:16].view(U) & U(0xFFFFE000) | U(0x1000)  # ties
    return [x, np.zeros(_N, U)], {1: (x.view(U) + U(0x1000)) & U(0xFFFFE000)}


@case("ptx_scalar")
def ptx_to_integers(rng: Rng) -> Given:
    x = (floats(rng, _N) * 10).astype(F)
    x[:8] = [2.5, -2.5, 3.5, 1e20, -1e20, np.nan, np.inf, -0.5]
    exact = np.nan_to_num(x.astype(D), nan=0.0, posinf=1e30, neginf=-1e30)
    rows = [np.clip(f(exact), -(2.0**31), 2.0**31 - 1) for f in (np.rint, np.trunc, np.floor)]
    unsigned = np.clip(np.ceil(exact), 0, 2.0**32 - 1).astype(U)
    return [x, blank(4 * _N, dtype=Z)], {1: [*rows, unsigned.view(Z)]}


@case("ptx_scalar")
def ptx_from_integers(rng: Rng) -> Given:
    x = words(rng)
    to_zero = [_directed(v, "zero") for v in x.view(Z).tolist()]
    up = [_directed(v, "up") for v in x.tolist()]
    return [x.view(Z), blank(3 * _N)], {1: [x.view(Z).astype(F), to_zero, up]}


_of_floats("ptx_whole_floats", lambda a, b, c: 100 * np.floor(a) + np.rint(b))


def _byte(a: int) -> int:
    return (a & 0x7F) - (a & 0x80)


_of_words("ptx_extend", lambda a, b, c: (b & 0xFFFF) + _byte(a))
_of_words("ptx_saturate_to_byte",
          lambda a, b, c: _clamp(signed(a) >> 14, -128, 127) + _clamp(signed(a) >> 14, 0, 65535))


# --- memory -----------------------------------------------------------------------------------------------------------


@case("ptx_scalar")
def ptx_vector_accesses(rng: Rng) -> Given:
    x, w = floats(rng, 64, 4), rng.integers(0, 65536, (64, 2)).astype(np.uint16)
    return [x, blank(64, 4), w, blank(64, dtype=U)], {1: x[:, ::-1], 3: w[:, 0].astype(U) * 3 + w[:, 1]}


@case("ptx_scalar")
def ptx_bytes(rng: Rng) -> Given:
    x = np.arange(-128, 128).astype(np.int8)
    return [x, blank(256, dtype=Z), np.zeros(256, np.uint8)], {1: x.astype(Z) * 1000 + x.view(np.uint8),
                                                               2: x.view(np.uint8)}


@case("ptx_scalar")
def ptx_shared_memory(rng: Rng) -> Given:
    x = rng.integers(0, 1000, 128).astype(U)
    i = np.arange(128) % 127
    return [x, blank(128, dtype=U)], {1: x[i + 1] + 14 * x[i] + 1}


@case("ptx_scalar")
def ptx_atomics(rng: Rng) -> Given:
    cells, wide = np.array([3, 0xFFFF, 0, 7], U), np.zeros(128, Q)
    given = [cells, np.array([-9], Z), np.array([1], F), wide, blank(128, dtype=U)]
    total = 128 * 127 // 2
    return given, {0: [3 + total, 0xFF00, 128 % 41, 135], 1: [77], 2: [1 + total / 2], 3: np.full(128, 9)}


@case("ptx_scalar")
def ptx_vector_atomics(rng: Rng) -> Given:
    total = 32 * 31 / 2
    halves = torch.tensor([64.0, 32.0], dtype=torch.bfloat16).view(torch.int16).numpy().view(U)
    sums = np.array([64.0, 32.0], np.float16).view(U)
    return [np.zeros(4, F), np.zeros(2, F), np.zeros(2, U)], {0: [total, 32, -total, 64], 1: [total, 96],
                                                             2: [halves[0], sums[0]]}


@case("ptx_scalar")
def ptx_ordered_accesses(rng: Rng) -> Given:
    x = rng.integers(0, 1000, 64).astype(U)
    return [x, blank(64, dtype=U)], {1: 3 * x}
