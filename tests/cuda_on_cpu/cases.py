"""Inputs and expected results of the kernels in `kernels/`: a function per launcher, registered by a decorator.

A case returns the launcher's arguments in order, and the expected contents of arrays after the call by the argument's
position. Arrays are copied to the device and back; numbers are passed unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
Given = tuple[list[Any], dict[int, Any]]
F, D, Z, U, H = np.float32, np.float64, np.int32, np.uint32, np.float16


@dataclass(frozen=True)
class Case:
    """A launcher of `kernels/<file>.cu`, its arguments and expected results. `tolerance` is relative and absolute."""

    file: str
    launcher: str
    make: Callable[[Rng], Given]
    tolerance: float


CASES: list[Case] = []


def case(file: str, tolerance: float = 0.0) -> Callable[[Callable[[Rng], Given]], Callable[[Rng], Given]]:
    """Registers a function as a case under its own name."""

    def register(make: Callable[[Rng], Given]) -> Callable[[Rng], Given]:
        CASES.append(Case(file, make.__name__, make, tolerance))
        return make

    return register


def floats(rng: Rng, *shape: int) -> np.ndarray:
    """Returns normally distributed values. Kernels that divide are designed so that they do not divide by values near
    0.
    """
    return rng.standard_normal(shape).astype(F)


def ints(rng: Rng, *shape: int, high: int = 100) -> np.ndarray:
    """Returns integers from 0 to `high` (exclusive)."""
    return rng.integers(0, high, shape).astype(Z)


def blank(*shape: int, dtype: Any = F) -> np.ndarray:
    """Returns an array for a result, filled with a value that no kernel computes."""
    return np.full(shape, 99, dtype)


# --- basics -----------------------------------------------------------------------------------------------------------


def _added(rng: Rng, n: int) -> Given:
    a, b = floats(rng, n), floats(rng, n)
    return [a, b, blank(n), n], {2: a + b}


@case("basics")
def vector_add(rng: Rng) -> Given:
    return _added(rng, 1001)


@case("basics")
def launch_by_pointer(rng: Rng) -> Given:
    return _added(rng, 333)


@case("basics")
def launch_in_macro(rng: Rng) -> Given:
    return _added(rng, 100)


@case("basics")
def launch_in_lambda(rng: Rng) -> Given:
    return _added(rng, 500)


@case("basics", 1e-6)
def grid_stride(rng: Rng) -> Given:
    x = floats(rng, 1000)
    return [x, 1000], {0: 2 * x + 1}


def _indices() -> np.ndarray:
    z, y, x = np.meshgrid(np.arange(6), np.arange(6), np.arange(8), indexing="ij")
    return (x + 100 * y + 10000 * z).astype(Z).ravel()


@case("basics")
def indices_3d(rng: Rng) -> Given:
    return [blank(6 * 6 * 8, dtype=Z)], {0: _indices()}


@case("basics")
def braces(rng: Rng) -> Given:
    return [blank(6 * 6 * 8, dtype=Z)], {0: _indices()}


@case("basics")
def thread_order(rng: Rng) -> Given:
    z, y, x = np.meshgrid(np.arange(2), np.arange(3), np.arange(5), indexing="ij")
    return [blank(30, dtype=Z)], {0: (x | y << 8 | z << 16).astype(Z).ravel()}


@case("basics")
def default_block(rng: Rng) -> Given:
    return [blank(20, dtype=Z), 20], {0: (10 * np.arange(20) + 1).astype(Z)}


@case("basics", 1e-5)
def constant_memory(rng: Rng) -> Given:
    x = floats(rng, 50)
    return [x, blank(50), 50], {1: 1 + 2 * x + 3 * x**2 + 4 * x**3 + 7}


@case("basics", 1e-6)
def constant_offset(rng: Rng) -> Given:
    x = floats(rng, 50)
    return [x, blank(50), 50], {1: 5 * x + 7}


@case("basics")
def device_variable(rng: Rng) -> Given:
    return [blank(1, dtype=Z)], {0: [165]}


@case("basics", 1e-6)
def qualifiers(rng: Rng) -> Given:
    x = floats(rng, 300)
    return [x, blank(300), 300], {1: 2 * x + x * x + (np.arange(300) + 3) // 4}


@case("basics", 1e-6)
def struct_argument(rng: Rng) -> Given:
    x = floats(rng, 100)
    return [x, blank(100), 100], {1: 3 * x + (np.arange(100) + 2) % 8}


@case("basics")
def several_kernels(rng: Rng) -> Given:
    x = ints(rng, 40)
    return [x], {0: (x + 1) * 3 + 1}


@case("basics")
def function_pointer(rng: Rng) -> Given:
    x = ints(rng, 40)
    return [x], {0: x * 3 + 2}


@case("basics")
def null_argument(rng: Rng) -> Given:
    return [blank(16)], {0: np.full(16, -1)}


@case("basics")
def string_in_kernel(rng: Rng) -> Given:
    return [blank(8, dtype=Z)], {0: [ord(c) for c in "kernel<<"]}


@case("basics")
def device_pass(rng: Rng) -> Given:
    return [blank(2, dtype=Z)], {0: [1, 1]}


@case("basics")
def control_flow(rng: Rng) -> Given:
    x = ints(rng, 200)
    return [x, blank(200, dtype=Z), 200], {1: np.array([10, 30, 30, -1])[x % 4]}


@case("basics")
def recursion(rng: Rng) -> Given:
    return [blank(12, dtype=Z)], {0: [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]}


@case("basics")
def local_array(rng: Rng) -> Given:
    x = floats(rng, 100)
    windows = np.stack([np.roll(x, -k) for k in range(16)], 1)
    return [x, blank(100), 100], {1: np.sort(windows, 1)[:, 8]}


# --- templates --------------------------------------------------------------------------------------------------------


@case("templates")
def functor_argument(rng: Rng) -> Given:
    x = floats(rng, 200)
    return [x, blank(200), 200], {1: x * x}


@case("templates")
def functor_with_state(rng: Rng) -> Given:
    x = floats(rng, 200)
    return [x, blank(200), 200], {1: F(2.5) * x}


@case("templates")
def qualified_template(rng: Rng) -> Given:
    x = floats(rng, 301)
    return [x, blank(301), 301], {1: x}


@case("templates")
def comparison_in_arguments(rng: Rng) -> Given:
    return [blank(16, dtype=Z)], {0: -5 - np.arange(16)}


@case("templates")
def launch_in_template(rng: Rng) -> Given:
    x = rng.standard_normal(77)
    return [x, blank(77, dtype=D), 77], {1: x}


@case("templates", 1e-5)
def shared_in_template(rng: Rng) -> Given:
    x, y = floats(rng, 300), ints(rng, 300)
    padded, counted = np.pad(x, (0, 84)), np.pad(y, (0, 20))
    return [x, blank(3), y, blank(5, dtype=Z), 300], {
        1: padded.reshape(3, 128).sum(1),
        3: counted.reshape(5, 64).sum(1),
    }


@case("templates")
def launch_in_member(rng: Rng) -> Given:
    x = floats(rng, 60)
    return [x, blank(60), 60], {1: F(1.5) * x}


@case("templates")
def variadic(rng: Rng) -> Given:
    return [blank(4)], {0: np.full(4, 6.5)}


@case("templates", 1e-5)
def recursive_template(rng: Rng) -> Given:
    x = floats(rng, 100)
    return [x, blank(100), 100], {1: x**5}


@case("templates")
def constexpr_branch(rng: Rng) -> Given:
    x, y = floats(rng, 64), rng.standard_normal(64)
    return [x, blank(64), y, blank(64, dtype=D), 64], {1: x * 4, 3: y * 8}


@case("templates")
def launch_in_dispatch(rng: Rng) -> Given:
    x = floats(rng, 100)
    return [x, blank(100), 100], {1: x}


@case("templates", 1e-6)
def device_lambda(rng: Rng) -> Given:
    x = floats(rng, 100)
    wide = np.pad(x, 1, mode="edge")
    return [x, blank(100), 100], {1: (wide[:-2] + x + wide[2:]) / 3}


# --- shared -----------------------------------------------------------------------------------------------------------


@case("shared")
def reverse(rng: Rng) -> Given:
    x = ints(rng, 200)
    return [x, blank(200, dtype=Z), 200], {1: x[::-1]}


@case("shared")
def dynamic(rng: Rng) -> Given:
    x = floats(rng, 77)
    return [x, blank(77), 77], {1: np.roll(x, -1)}


@case("shared")
def carved(rng: Rng) -> Given:
    x, order = floats(rng, 100), rng.permutation(100).astype(Z)
    return [x, order, blank(100), 100], {2: x[order]}


@case("shared", 1e-5)
def in_device_function(rng: Rng) -> Given:
    x = floats(rng, 5, 333)
    return [x, blank(5), 5, 333], {1: x.sum(1)}


@case("shared")
def transpose(rng: Rng) -> Given:
    x = floats(rng, 37, 50)
    return [x, blank(50, 37), 37, 50], {1: x.T}


@case("shared")
def of_structs(rng: Rng) -> Given:
    x = floats(rng, 1000)
    return [x, blank(1, dtype=Z), 1000], {1: [int(x.argmax())]}


@case("shared")
def of_union(rng: Rng) -> Given:
    x = floats(rng, 32)
    return [x, blank(32, dtype=Z)], {1: x[::-1].copy().view(Z)}


@case("shared")
def shared_scalar(rng: Rng) -> Given:
    x = floats(rng, 250)
    return [x, blank(1), 250], {1: [float((x > x[0]).sum())]}


@case("shared")
def volatile_shared(rng: Rng) -> Given:
    x = floats(rng, 64)
    return [x, blank(64)], {1: x[np.arange(64) ^ 1]}


@case("shared")
def more_than_48k(rng: Rng) -> Given:
    x = floats(rng, 15000)
    return [x, blank(15000), 15000], {1: x[::-1]}


@case("shared", 1e-5)
def double_buffer(rng: Rng) -> Given:
    x = floats(rng, 320)
    return [x, blank(64), 320], {1: x.reshape(5, 64)[:, ::-1].sum(0)}


@case("shared")
def shared_in_lambda(rng: Rng) -> Given:
    x = floats(rng, 64)
    return [x, blank(64)], {1: 2 * x[::-1]}


@case("shared", 1e-5)
def shared_in_loop(rng: Rng) -> Given:
    x = floats(rng, 7, 32)
    return [x, blank(32), 7], {1: sum(np.roll(x[r], -r) for r in range(7))}


@case("shared")
def declared_in_macro(rng: Rng) -> Given:
    x = floats(rng, 64)
    return [x, blank(64)], {1: x[::-1]}


# --- matmul -----------------------------------------------------------------------------------------------------------


def _product(rng: Rng) -> Given:
    a, b = floats(rng, 37, 45), floats(rng, 45, 29)
    return [a, b, blank(37, 29), 37, 29, 45], {2: a @ b}


@case("matmul", 1e-4)
def naive_matmul(rng: Rng) -> Given:
    return _product(rng)


@case("matmul", 1e-4)
def tiled_matmul(rng: Rng) -> Given:
    return _product(rng)


# --- barriers ---------------------------------------------------------------------------------------------------------


@case("barriers")
def early_return(rng: Rng) -> Given:
    x = floats(rng, 77)
    return [x, blank(77), 77], {1: x[::-1]}


@case("barriers")
def in_loop(rng: Rng) -> Given:
    x = ints(rng, 201)
    return [x, 201], {0: np.cumsum(x)}


@case("barriers")
def in_function(rng: Rng) -> Given:
    x = ints(rng, 96)
    return [x, blank(96, dtype=Z)], {1: np.roll(x, -37)[::-1] + 1}


@case("barriers")
def counting(rng: Rng) -> Given:
    x = ints(rng, 150)
    return [x, blank(3, dtype=Z), 150], {1: [int((x % 2 == 0).sum()), 1, int((x == 77).any())]}


@case("barriers")
def uniform_branch(rng: Rng) -> Given:
    x = floats(rng, 4, 64)
    expected = x[:, ::-1].copy()
    expected[1::2] = 0
    return [x, blank(4, 64), 256], {1: expected}


@case("barriers", 1e-4)
def last_block(rng: Rng) -> Given:
    x = floats(rng, 5000)
    return [x, blank(7), blank(1), 5000], {2: [x.astype(D).sum()]}


@case("barriers")
def bitonic_sort(rng: Rng) -> Given:
    x = floats(rng, 512)
    return [x, 512], {0: np.sort(x)}


@case("barriers")
def odd_block(rng: Rng) -> Given:
    x = ints(rng, 105)
    return [x, blank(105, dtype=Z)], {1: x[::-1]}


@case("barriers")
def warp_barrier(rng: Rng) -> Given:
    x = ints(rng, 4, 32)
    expected = x[:, ::-1].copy()
    expected[:, :16] = expected[:, 15::-1]
    return [x, blank(4, 32, dtype=Z)], {1: expected}


# --- warps ------------------------------------------------------------------------------------------------------------


@case("warps")
def shfl(rng: Rng) -> Given:
    x = ints(rng, 2, 32)
    return [x, blank(2, 32, dtype=Z)], {1: np.roll(x, -5, 1)}


@case("warps")
def shfl_up(rng: Rng) -> Given:
    x = floats(rng, 2, 32)
    return [x, blank(2, 32)], {1: np.concatenate([x[:, :3], x[:, :-3]], 1)}


@case("warps")
def shfl_down(rng: Rng) -> Given:
    x = floats(rng, 2, 32)
    return [x, blank(2, 32)], {1: np.concatenate([x[:, 7:], x[:, -7:]], 1)}


@case("warps")
def shfl_xor(rng: Rng) -> Given:
    x = rng.standard_normal(64)
    return [x, blank(64, dtype=D)], {1: x[np.arange(64) ^ 13]}


@case("warps")
def shfl_width(rng: Rng) -> Given:
    x, worker = ints(rng, 64), np.arange(64)
    down = np.where(worker % 8 + 3 < 8, worker + 3, worker)
    up = np.where(worker % 4 >= 1, worker - 1, worker)
    return [x, blank(256, dtype=Z)], {1: np.concatenate([x[worker // 8 * 8 + 2], x[down], x[up], x[worker ^ 5]])}


@case("warps")
def shfl_64_bits(rng: Rng) -> Given:
    x = rng.integers(-(2**62), 2**62, 32)
    return [x, blank(32, dtype=np.int64)], {1: x[::-1]}


@case("warps", 1e-5)
def warp_per_row(rng: Rng) -> Given:
    x = floats(rng, 10, 100)
    return [x, blank(10), 10, 100], {1: x.sum(1)}


@case("warps")
def votes(rng: Rng) -> Given:
    x = ints(rng, 3, 32)
    ballots = ((x > 50) * (1 << np.arange(32))).sum(1)
    return [x, blank(9, dtype=U)], {1: np.stack([ballots, (x == 99).any(1), np.ones(3)], 1).ravel()}


@case("warps")
def partial_mask(rng: Rng) -> Given:
    x = ints(rng, 32)
    return [x, blank(32, dtype=Z)], {1: [int(x[:12].sum())] * 12 + [-1] * 20}


@case("warps")
def two_halves(rng: Rng) -> Given:
    x = ints(rng, 32)
    return [x, blank(32, dtype=Z)], {1: [x[15]] * 16 + [x[16]] * 16}


@case("warps")
def active_mask(rng: Rng) -> Given:
    mask = sum(1 << worker for worker in range(0, 32, 3))
    return [blank(32, dtype=U)], {0: [mask if worker % 3 == 0 else 0 for worker in range(32)]}


@case("warps")
def reduce(rng: Rng) -> Given:
    x, y = ints(rng, 32) - 50, rng.integers(0, 2**32, 32).astype(U)
    bits = [np.bitwise_and.reduce(y), np.bitwise_or.reduce(y), np.bitwise_xor.reduce(y), y.max()]
    return [x, y, blank(3, dtype=Z), blank(4, dtype=U)], {2: [x.sum(), x.min(), x.max()], 3: bits}


@case("warps")
def match(rng: Rng) -> Given:
    x = ints(rng, 32, high=5)
    masks = [sum(1 << j for j in range(32) if x[j] == x[i]) for i in range(32)]
    return [x, blank(32, dtype=U), blank(32, dtype=Z)], {1: masks, 2: np.ones(32)}


@case("warps")
def lane_scan(rng: Rng) -> Given:
    x = ints(rng, 3, 32)
    return [x, blank(3, 32, dtype=Z)], {1: np.cumsum(x, 1)}


@case("warps", 1e-5)
def softmax(rng: Rng) -> Given:
    x = floats(rng, 6, 100)
    powers = np.exp(x - x.max(1, keepdims=True))
    return [x, blank(6, 100), 6, 100], {1: powers / powers.sum(1, keepdims=True)}


@case("warps")
def lanes_that_left(rng: Rng) -> Given:
    x = ints(rng, 20)
    return [x, blank(20, dtype=Z), 20], {1: [int(x.sum())] * 20}


@case("warps")
def compact(rng: Rng) -> Given:
    x = ints(rng, 30) - 50
    kept = x[x > 0]
    expected = np.concatenate([kept, np.full(30 - len(kept), 99)])
    return [x, blank(30, dtype=Z), np.zeros(1, Z), 30], {1: expected, 2: [len(kept)]}


# --- atomics ----------------------------------------------------------------------------------------------------------


@case("atomics")
def add(rng: Rng) -> Given:
    n = 37 * 96
    zeros = [np.zeros(1, t) for t in (Z, U, np.uint64, F, D)]
    return [*zeros], {0: [-2 * n], 1: [3 * n], 2: [5 * n], 3: [n / 2], 4: [n / 4]}


@case("atomics")
def histogram(rng: Rng) -> Given:
    x = ints(rng, 3000)
    return [x, np.zeros(16, Z), 3000], {1: np.bincount(x & 15, minlength=16)}


@case("atomics")
def extremes(rng: Rng) -> Given:
    x = ints(rng, 300, high=2000) - 1000
    bits = x.view(U)
    start = [np.array([-5000, 5000], Z), np.array([0, 2**32 - 1], U)]
    return [x, *start, 300], {1: [x.max(), x.min()], 2: [bits.max(), bits.min()]}


@case("atomics")
def bitwise(rng: Rng) -> Given:
    odd = 0
    for i in range(192):
        odd ^= i
    return [np.array([0, 2**32 - 1, 0], U)], {0: [2**32 - 1, 0xFFFF0000, odd]}


@case("atomics")
def subtract(rng: Rng) -> Given:
    return [np.array([1000], Z), np.array([500], U)], {0: [400], 1: [300]}


@case("atomics")
def exchange(rng: Rng) -> Given:
    # The order of lanes is unspecified. A warp on the CPU goes in order, and so does the hardware for one address.
    return [np.zeros(1, Z), blank(32, dtype=Z)], {}


@case("atomics")
def compare_and_swap(rng: Rng) -> Given:
    x = floats(rng, 500)
    return [x, np.full(1, -1e30, F), 500], {1: [x.max()]}


@case("atomics")
def wrapping(rng: Rng) -> Given:
    return [np.zeros(1, U), np.zeros(1, U)], {0: [5], 1: [5]}


@case("atomics")
def tickets(rng: Rng) -> Given:
    return [np.zeros(1, Z), np.zeros(1000, Z)], {0: [1000], 1: np.ones(1000)}


@case("atomics")
def long_long(rng: Rng) -> Given:
    x = rng.integers(0, 2**40, 64)
    return [x, np.zeros(1, np.uint64), np.full(1, -1, np.int64), 64], {1: [x.sum()], 2: [x.max()]}


@case("atomics")
def spin_lock(rng: Rng) -> Given:
    return [np.zeros(1, Z), np.zeros(1, Z)], {0: [0], 1: [40]}


@case("atomics")
def scoped(rng: Rng) -> Given:
    return [np.zeros(1, Z)], {0: [6 * 64 * 63 // 2]}


# --- vectors ----------------------------------------------------------------------------------------------------------


@case("vectors")
def float4_load(rng: Rng) -> Given:
    x = floats(rng, 25, 4)
    return [x, blank(25, 4), 100], {1: np.stack([x[:, 0] + 1, x[:, 1] * 2, x[:, 2] - 3, -x[:, 3]], 1)}


@case("vectors")
def makers(rng: Rng) -> Given:
    return [blank(2), blank(3, dtype=Z), blank(1, dtype=D)], {0: [3, 60], 1: [30, 256, 156], 2: [110]}


@case("vectors")
def sizes(rng: Rng) -> Given:
    return [blank(12, dtype=Z)], {0: [12, 16, 16, 8, 3, 8, 16, 12, 4, 16, 4, 6]}


@case("vectors")
def own_operators(rng: Rng) -> Given:
    x = floats(rng, 40, 2)
    return [x, blank(40, 2), 40], {1: x + x[::-1]}


@case("vectors", 1e-6)
def cache_hints(rng: Rng) -> Given:
    x, y = floats(rng, 50), ints(rng, 50, 4)
    return [x, y, blank(50), blank(50, dtype=Z), 50], {2: 5 * x, 3: y.sum(1)}


@case("vectors", 1e-6)
def aligned_struct(rng: Rng) -> Given:
    x = floats(rng, 20, 4)
    kinds = ints(rng, 20)
    x[:, 3] = kinds.view(F)
    return [x, blank(20), 20], {1: x[:, :3].sum(1) + kinds + 16}


@case("vectors")
def aligned_vector(rng: Rng) -> Given:
    x = floats(rng, 30, 4)
    return [x, blank(30, 4), 120], {1: x * np.arange(1, 5, dtype=F)}


@case("vectors")
def byte_vectors(rng: Rng) -> Given:
    x = rng.integers(0, 2**32, 50).astype(U)
    return [x, blank(50, dtype=U), 50], {1: (x & 0x00FFFF00) | (x >> 24) | (x << 24)}


# --- half -------------------------------------------------------------------------------------------------------------


def _edges(rng: Rng) -> np.ndarray:
    """Returns floats of all sizes, with ties, subnormals, overflow and infinity."""
    x = (rng.standard_normal(500) * 10.0 ** rng.uniform(-9, 6, 500)).astype(F)
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, 2**-24, 2**-25, 3 * 2**-26, 0, -0.0, np.inf, -np.inf], F)
    return np.concatenate([x, ties])


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Returns the upper 16 bits of floats, rounded to nearest even."""
    bits = np.asarray(x, F).view(U).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Returns the floats with these bfloat16 bits."""
    return (bits.astype(U) << 16).view(F)


@case("half")
def round_to_half(rng: Rng) -> Given:
    x = _edges(rng)
    with np.errstate(over="ignore"):
        rounded = x.astype(H)
    n = len(x)
    return [x, blank(n, dtype=np.uint16), blank(n), n], {1: rounded.view(np.uint16), 2: rounded.astype(F)}


@case("half")
def round_to_bfloat16(rng: Rng) -> Given:
    x = _edges(rng)
    bits, n = to_bfloat16(x), len(x)
    return [x, blank(n, dtype=np.uint16), blank(n), n], {1: bits, 2: from_bfloat16(bits)}


@case("half", 1e-3)
def half_intrinsics(rng: Rng) -> Given:
    a, b = floats(rng, 100).astype(H), (floats(rng, 100) + 5).astype(H)
    fused = (a.astype(D) * b.astype(D) + a.astype(D)).astype(H)
    rows = [a + b, a - b, a * b, a / b, fused, -abs(a), np.maximum(a, b), (a < b).astype(H)]
    return [a, b, blank(800, dtype=H), 100], {2: np.concatenate(rows)}


@case("half", 4e-3)
def half_operators(rng: Rng) -> Given:
    a, b = floats(rng, 100).astype(H), floats(rng, 100).astype(H)
    total = (a + b) * b - H(1)
    return [a, b, blank(100, dtype=H), 100], {2: np.where(a > b, total, -total)}


@case("half", 4e-3)
def half2_pairs(rng: Rng) -> Given:
    a, b = floats(rng, 50, 2).astype(H), floats(rng, 50, 2).astype(H)
    v = (a.astype(F) * b.astype(F) + F(0.5)).astype(H) + np.stack([a[:, 0], b[:, 1]], 1)
    return [a, b, blank(50, 2, dtype=H), blank(50, 2), 50], {2: v, 3: v[:, ::-1].astype(F)}


@case("half")
def bfloat16_arithmetic(rng: Rng) -> Given:
    a, b = to_bfloat16(floats(rng, 100)), to_bfloat16(floats(rng, 100))
    x, y = from_bfloat16(a), from_bfloat16(b)
    rows = [to_bfloat16(v) for v in (x + y, x * y, x / y, np.minimum(x, y))]
    return [a, b, blank(400, dtype=np.uint16), 100], {2: np.concatenate(rows)}


@case("half")
def bfloat162_pairs(rng: Rng) -> Given:
    bits = to_bfloat16(floats(rng, 50, 2))
    x = from_bfloat16(bits)
    expected = np.stack([to_bfloat16(x[:, 0] + x[:, 1]), to_bfloat16(x[:, 0] - x[:, 1])], 1)
    return [bits, blank(50, 2, dtype=np.uint16), 50], {1: expected}


@case("half", 2e-3)
def half_math(rng: Rng) -> Given:
    x = (abs(floats(rng, 100)) + 0.5).astype(H)
    wide = x.astype(F)
    rows = [np.exp(wide), np.sqrt(wide), np.log(wide), 1 / wide, np.floor(wide)]
    return [x, blank(500, dtype=H), 100], {1: np.concatenate(rows)}


@case("half")
def half_and_integers(rng: Rng) -> Given:
    x = (floats(rng, 100) * 50).astype(F)
    h = x.astype(H).astype(F)
    rows = [np.rint(h), np.trunc(h), np.trunc(h), np.arange(100) * 3]
    return [x, blank(400, dtype=Z), 100], {1: np.concatenate(rows)}


@case("half")
def half_atomics(rng: Rng) -> Given:
    # A single half is added by compare-and-swap of 32 bits, so the array has one spare element.
    return [np.zeros(2, H), np.zeros(2, H)], {0: [64, 0], 1: [128, 256]}


@case("half", 1e-2)
def half_shuffle(rng: Rng) -> Given:
    x = abs(floats(rng, 32)).astype(H)
    return [x, blank(1)], {1: [x.astype(F).sum()]}


@case("half")
def half_vector_load(rng: Rng) -> Given:
    x = floats(rng, 96).astype(H)
    return [x, blank(96, dtype=H), 96], {1: x * H(2)}


# --- math -------------------------------------------------------------------------------------------------------------

_erf = np.vectorize(math.erf)


def _inverse_erf(y: np.ndarray) -> np.ndarray:
    x = np.zeros_like(y)
    for _ in range(40):
        x -= (_erf(x) - y) * math.sqrt(math.pi) / 2 * np.exp(x * x)
    return x


def _unary(rng: Rng, function: Callable[[np.ndarray], np.ndarray]) -> Given:
    """Returns values from 0.25 to 4.25; the expected results are computed in float64."""
    x = (rng.random(200) * 4 + 0.25).astype(F)
    return [x, blank(200), 200], {1: function(x.astype(D))}


@case("math", 1e-5)
def fast_exponential(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.exp(x) + np.exp2(x) + 10 ** (0.1 * x) + np.expm1(x))


@case("math", 1e-5)
def fast_logarithm(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.log(x) + np.log2(x) + np.log10(x) + np.log1p(x))


@case("math", 1e-5)
def fast_trigonometry(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.sin(x) + np.cos(x) + np.tanh(x) + np.arctan2(x, 2))


@case("math", 1e-5)
def roots(rng: Rng) -> Given:
    return _unary(rng, lambda x: x**-0.5 + np.sqrt(x) + np.cbrt(x) + x**-0.5 + np.sqrt(x))


@case("math", 1e-5)
def division(rng: Rng) -> Given:
    return _unary(rng, lambda x: 4 / x + np.fmod(x, 0.75))


@case("math", 1e-5)
def fused(rng: Rng) -> Given:
    return _unary(rng, lambda x: x * x + 1 + 3 * x + x * x + x + 1)


@case("math", 1e-6)
def saturation(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.clip(x - 2, 0, 1) + np.minimum(x, 2) + np.maximum(x, 1) + np.maximum(x - 1.5, 0))


@case("math")
def rounding(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.floor(x) + np.ceil(x) + 2 * np.rint(x) + np.trunc(x) + np.floor(x + 0.5))


@case("math", 1e-5)
def error_function(rng: Rng) -> Given:
    return _unary(rng, lambda x: 1 + (1 + _erf(x / math.sqrt(2))) / 2 + _inverse_erf(0.2 * x))


@case("math", 1e-5)
def gelu(rng: Rng) -> Given:
    return _unary(rng, lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))))


@case("math", 1e-5)
def power(rng: Rng) -> Given:
    return _unary(rng, lambda x: x**1.5 + 2 * x**2 + np.hypot(x, 1))


@case("math", 1e-5)
def pi_functions(rng: Rng) -> Given:
    return _unary(rng, lambda x: np.sin(np.pi * x) + np.cos(np.pi * x))


@case("math", 1e-5)
def overloads(rng: Rng) -> Given:
    return _unary(rng, lambda x: x + np.maximum(x, 1) + np.minimum(x, 2) + np.exp(x) + np.sqrt(x) + np.floor(x))


@case("math")
def classification(rng: Rng) -> Given:
    x = np.array([1, -1, np.inf, -np.inf, np.nan, 0, -0.0], F)
    return [x, blank(7), 7], {1: [4, 12, 2, 10, 1, 4, 12]}


@case("math")
def constants(rng: Rng) -> Given:
    return [blank(6)], {0: np.array([np.inf, -np.inf, np.nan, np.finfo(F).max, np.pi, np.nan], F)}


def _reversed_bits(x: int) -> int:
    return int(f"{x:032b}"[::-1], 2)


@case("math")
def bit_intrinsics(rng: Rng) -> Given:
    x = rng.integers(1, 2**32, 50).astype(U)
    x[0] = 0
    values = [int(v) for v in x]
    counts = [v.bit_count() for v in values]
    zeros = [32 - v.bit_length() for v in values]
    first = [(v & -v).bit_length() for v in values]
    permuted = [(v & 0xFF) | (v >> 24) << 8 | 0x04 << 16 | (v & 0xFF) << 24 for v in values]
    # Selector 0x7430, lowest digit first: bytes 0 and 3 of x, byte 0 of the second word (4), byte 3 of it (1).
    permuted = [(v & 0xFF) | (v >> 24) << 8 | 0x04 << 16 | 0x01 << 24 for v in values]
    high = [v * 0x9E3779B9 >> 32 for v in values]
    funnel = [((0xDEADBEEF << 32 | v) << 9 >> 32) & 0xFFFFFFFF for v in values]
    words = [*map(_reversed_bits, values), *permuted, *high, *funnel]
    return [x, blank(200, dtype=Z), blank(200, dtype=U), 50], {1: counts + zeros + first + counts, 2: words}


@case("math")
def conversions(rng: Rng) -> Given:
    x = (floats(rng, 50) * 100).astype(F)
    x[:4] = [0.5, 1.5, -0.5, -2.5]
    rows = [np.rint(x), np.trunc(x), np.ceil(x), np.floor(x), x.view(Z), np.trunc(x), np.arange(50)]
    return [x, blank(350, dtype=Z), 50], {1: np.concatenate([row.astype(Z) for row in rows])}


@case("math", 1e-12)
def double_precision(rng: Rng) -> Given:
    x = rng.random(60) + 0.25
    return [x, blank(60, dtype=D), 60], {1: x**-0.5 + np.exp(-x) + x * x + 1 + np.maximum(x, 0.5) + x + 1 + _erf(x)}


@case("math")
def integer_functions(rng: Rng) -> Given:
    return [blank(12, dtype=Z)], {0: [3, 3, 8, 9, 5, 2, 15, 15, 2, -3, -1, 9]}


@case("math", 1e-5)
def sine_and_cosine(rng: Rng) -> Given:
    x = floats(rng, 50)
    row = np.sin(x.astype(D)) + 2 * np.cos(x.astype(D))
    return [x, blank(100), 50], {1: np.concatenate([row, row])}


# --- runtime ----------------------------------------------------------------------------------------------------------


@case("runtime")
def memset_and_memcpy(rng: Rng) -> Given:
    x = ints(rng, 50)
    return [x, blank(100, dtype=Z), 50], {1: np.concatenate([x, np.zeros(50)])}


@case("runtime")
def workspace(rng: Rng) -> Given:
    return [blank(77, dtype=Z), 77], {0: np.full(77, 42)}


@case("runtime")
def events(rng: Rng) -> Given:
    return [blank(32, dtype=Z), blank(1)], {0: np.full(32, 5), 1: [1]}


@case("runtime")
def bad_configuration(rng: Rng) -> Given:
    return [blank(4, dtype=Z)], {0: [1, 1, 1, 1]}


@case("runtime")
def too_much_shared_memory(rng: Rng) -> Given:
    return [blank(2, dtype=Z)], {0: [1, 1]}


@case("runtime")
def properties(rng: Rng) -> Given:
    return [blank(5, dtype=Z)], {0: [0, 1, 32, 1, 1]}


@case("runtime")
def occupancy(rng: Rng) -> Given:
    return [blank(100, dtype=Z), 100], {0: np.ones(100)}


@case("runtime")
def host_memory(rng: Rng) -> Given:
    return [blank(30, dtype=Z), 30], {0: np.arange(30) ** 2}


@case("runtime")
def checked_calls(rng: Rng) -> Given:
    return [blank(100, dtype=Z), 100], {0: [0] + [9] * 99}


# --- groups -----------------------------------------------------------------------------------------------------------


@case("groups")
def thread_block(rng: Rng) -> Given:
    x = ints(rng, 96)
    return [x, blank(96, dtype=Z)], {1: x[::-1] + np.arange(96) // 16}


@case("groups", 1e-5)
def tile_sum(rng: Rng) -> Given:
    x = floats(rng, 4, 32)
    return [x, blank(4)], {1: x.sum(1)}


@case("groups")
def tile_reduce(rng: Rng) -> Given:
    x = ints(rng, 8, 8)
    return [x, blank(24, dtype=Z)], {1: np.stack([x.sum(1), x.min(1), x.max(1)], 1).ravel()}


@case("groups")
def small_tiles(rng: Rng) -> Given:
    x, worker = ints(rng, 64), np.arange(64)
    tiles = x.reshape(16, 4)
    ballots = np.repeat(((tiles % 2) * [1, 2, 4, 8]).sum(1), 4)
    both = np.repeat((tiles > 90).any(1) + 2 * (tiles > 10).all(1), 4)
    up = np.where(worker % 4 >= 1, worker - 1, worker)
    return [x, blank(320, dtype=Z)], {1: np.concatenate([x[worker // 4 * 4 + 2], x[worker ^ 1], x[up], ballots, both])}


@case("groups")
def coalesced(rng: Rng) -> Given:
    x = ints(rng, 500)
    return [x, np.zeros(1, Z), 500], {1: [int((x % 3 == 0).sum())]}


@case("groups")
def grid_ranks(rng: Rng) -> Given:
    return [blank(300, dtype=Z), 300], {0: np.full(300, 120)}


@case("groups")
def generic_group(rng: Rng) -> Given:
    x = ints(rng, 4, 16)
    return [x, blank(64, dtype=Z)], {1: np.repeat(x.sum(1), 16)}


@case("groups")
def tile_scan(rng: Rng) -> Given:
    x = ints(rng, 2, 32)
    inclusive = np.cumsum(x, 1)
    return [x, blank(128, dtype=Z)], {1: np.concatenate([inclusive.ravel(), (inclusive - x).ravel()])}


# --- tensor cores -----------------------------------------------------------------------------------------------------


def _bfloat16(x: np.ndarray) -> np.ndarray:
    """Returns the bits of integers that are small enough to be exact."""
    return (x.astype(F).view(U) >> 16).astype(np.uint16)


def _tensor_product(
    rng: Rng, shape: tuple[int, int, int], held: Any, total: Any = F, *, by_rows: bool, low: int = -3
) -> Given:
    """Returns a case for a @ b + start with integers from `low` to 3. `shape` is (m, n, k). `held` is a dtype, or a
    function that makes the factors."""
    m, n, k = shape
    a, b, start = (rng.integers(low, 4, size) for size in ((m, k), (k, n), (m, n)))
    operands = [np.ascontiguousarray(x if by_rows else x.T) for x in (a, b)]
    made = [x.astype(held) if isinstance(held, type) else held(x) for x in operands]
    return [*made, start.astype(total), blank(m, n, dtype=total), m, n, k], {3: a @ b + start}


@case("tensor_cores")
def half_16_16_16(rng: Rng) -> Given:
    return _tensor_product(rng, (48, 80, 64), H, by_rows=True)


@case("tensor_cores")
def half_32_8_16(rng: Rng) -> Given:
    return _tensor_product(rng, (64, 40, 48), H, by_rows=False)


@case("tensor_cores")
def half_8_32_16(rng: Rng) -> Given:
    return _tensor_product(rng, (24, 64, 32), H, by_rows=True)


@case("tensor_cores")
def half_into_half(rng: Rng) -> Given:
    return _tensor_product(rng, (32, 48, 16), H, H, by_rows=False)


@case("tensor_cores")
def bfloat16_16_16_16(rng: Rng) -> Given:
    return _tensor_product(rng, (32, 96, 64), _bfloat16, by_rows=False)


@case("tensor_cores")
def bfloat16_32_8_16(rng: Rng) -> Given:
    return _tensor_product(rng, (96, 40, 32), _bfloat16, by_rows=True)


@case("tensor_cores")
def bfloat16_8_32_16(rng: Rng) -> Given:
    return _tensor_product(rng, (40, 64, 16), _bfloat16, by_rows=False)


@case("tensor_cores")
def tf32_by_rows(rng: Rng) -> Given:
    return _tensor_product(rng, (32, 48, 40), F, by_rows=True)


@case("tensor_cores")
def tf32_by_columns(rng: Rng) -> Given:
    return _tensor_product(rng, (48, 32, 24), F, by_rows=False)


@case("tensor_cores")
def signed_bytes(rng: Rng) -> Given:
    return _tensor_product(rng, (32, 64, 48), np.int8, Z, by_rows=True)


@case("tensor_cores")
def unsigned_bytes(rng: Rng) -> Given:
    return _tensor_product(rng, (16, 64, 32), np.uint8, Z, by_rows=False, low=0)


@case("tensor_cores")
def doubles(rng: Rng) -> Given:
    return _tensor_product(rng, (24, 40, 20), D, D, by_rows=True)


@case("tensor_cores", 1e-6)
def tf32_precision(rng: Rng) -> Given:
    a, b = floats(rng, 16, 8), floats(rng, 16, 8)
    a[:, 1:] = 0  # one product per element, so that the order of a sum does not matter
    low = U(0x1FFF)
    cut = [(x.view(U) & ~low).view(F).astype(D) for x in (a, b)]
    rounded = [((x.view(U) + U(0x1000)) & ~low).view(F).astype(D) for x in (a, b)]
    return [a, b, blank(16, 16), blank(16, 16)], {2: cut[1] @ cut[0].T, 3: rounded[1] @ rounded[0].T}


@case("tensor_cores")
def fragment_elements(rng: Rng) -> Given:
    x, y = floats(rng, 16, 16), floats(rng, 16, 16)
    return [x, y, blank(16, 16)], {2: np.maximum(2 * (x + y.T), 0)}


@case("tensor_cores")
def staged_product(rng: Rng) -> Given:
    a, b = (rng.integers(-3, 4, (32, 80)).astype(H) for _ in range(2))
    return [a, b, blank(32, 32), 32, 80], {2: a.astype(F) @ b.astype(F).T}


@case("tensor_cores")
def saturating_bytes(rng: Rng) -> Given:
    a, b = (rng.integers(-100, 101, (16, 16)).astype(np.int8) for _ in range(2))
    start = np.where(rng.random((16, 16)) < 0.5, 2**31 - 5, -(2**31) + 5).astype(Z)
    total = a.astype(np.int64) @ b.astype(np.int64) + start
    results = {3: total.astype(Z), 4: np.clip(total, -(2**31), 2**31 - 1)}
    return [a, b, start, *(blank(16, 16, dtype=Z) for _ in range(2))], results
