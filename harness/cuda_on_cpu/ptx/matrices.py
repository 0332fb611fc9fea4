"""Tensor cores: products of matrices, and the loads and stores of their fragments."""

from __future__ import annotations

import re

from .operation import SPACE, Operation, flags, translates

# The shapes that the hardware has, by the type of the factors: m, n and k.
_SHAPES = {
    "f16": {(16, 8, 8), (16, 8, 16)},
    "bf16": {(16, 8, 8), (16, 8, 16)},
    "tf32": {(16, 8, 4), (16, 8, 8)},
    "s8": {(8, 8, 16), (16, 8, 16), (16, 8, 32)},
    "u8": {(8, 8, 16), (16, 8, 16), (16, 8, 32)},
    "f64": {(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)},
}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "f64": 64, "f32": 32, "s32": 32}
_SHARED = ("shared", "shared::cta")


@translates("mma")
def multiply(op: Operation) -> str:
    """d = a * b + c by a warp."""
    op.choose("sync")
    op.choose("aligned")
    shape = next((word for word in op.words if re.fullmatch(r"m\d+n\d+k\d+", word)), "")
    if not shape:
        raise op.unknown()
    op.words.remove(shape)
    op.choose("row")
    op.choose("col")
    saturates = op.flag("satfinite")
    types = op.words
    op.words = []
    op.finish(4)
    sizes = tuple(map(int, re.findall(r"\d+", shape)))
    if len(types) != 4 or not _exists(sizes, *types, saturates=saturates):
        raise op.unknown()
    return _product(op, sizes, types, saturates)


def _exists(sizes: tuple[int, ...], d: str, a: str, b: str, c: str, *, saturates: bool) -> bool:
    if sizes not in _SHAPES.get(a, ()) or sizes not in _SHAPES.get(b, ()):
        return False
    if a in ("s8", "u8"):
        return b in ("s8", "u8") and d == c == "s32"
    if a != b or saturates:
        return False
    if a == "f64":
        return d == c == "f64"
    return d in ("f16", "f32") and c in ("f16", "f32") if a == "f16" else d == c == "f32"


def _product(op: Operation, sizes: tuple[int, ...], types: list[str], saturates: bool) -> str:
    m, n, k = sizes
    d, a, b, c = types
    kind = "b64" if a == "f64" else "b32"
    word = int(kind[1:])
    expected = [m * n * _BITS[d], m * k * _BITS[a], k * n * _BITS[b], m * n * _BITS[c]]
    for operand, bits in zip(op.operands, expected, strict=True):
        if len(op.vector(operand)) * word * 32 != bits:
            raise op.unknown()
    destination, *factors = op.operands
    arrays = " ".join(op.array(name, operand, kind) for name, operand in zip("abc", factors, strict=True))
    count = len(op.vector(destination))
    result = f"std::uint{word}_t d[{count}];"
    formats = ", ".join(f"{SPACE}Format::{name}" for name in (a, b, c, d))
    product = f"::cuda_on_cpu::MatrixProduct{{{m}, {n}, {k}, {formats}, {next(flags(saturates))}, a, b, c, d}}"
    return f"{arrays} {result} {SPACE}multiply({product}); {op.put_array('d', destination)}"


def _fragments(op: Operation) -> tuple[int, str]:
    """Takes the words of ldmatrix and stmatrix. Returns the number of matrices, and whether they are transposed."""
    op.choose("sync")
    op.choose("aligned")
    op.choose("m8n8")
    count = int(op.choose("x1", "x2", "x4")[1:])
    transposed = op.flag("trans")
    op.drop(*_SHARED)
    op.type("b16")
    op.finish(2)
    return count, next(flags(transposed))


@translates("ldmatrix")
def load_matrices(op: Operation) -> str:
    """Loads of matrices of 8 x 8 halves, distributed over a warp."""
    count, transposed = _fragments(op)
    destination, address = op.operands
    if len(op.vector(destination)) != count:
        raise op.unknown()
    load = f"{SPACE}load_matrices<{count}, {transposed}>({op.address(address)}, d);"
    return f"std::uint32_t d[{count}]; {load} {op.put_array('d', destination)}"


@translates("stmatrix")
def store_matrices(op: Operation) -> str:
    """Stores of matrices of 8 x 8 halves that a warp holds."""
    count, transposed = _fragments(op)
    address, source = op.operands
    if len(op.vector(source)) != count:
        raise op.unknown()
    return f"{op.array('s', source)} {SPACE}store_matrices<{count}, {transposed}>({op.address(address)}, s);"


@translates("movmatrix")
def transpose(op: Operation) -> str:
    """The transpose of a matrix of 8 x 8 halves that a warp holds."""
    for word in ("sync", "aligned", "m8n8", "trans"):
        op.choose(word)
    op.type("b16")
    op.finish(2)
    return op.put(op.operands[0], f"{SPACE}transpose_matrix({op.values('b32')})")
