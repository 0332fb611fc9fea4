"""Conversions between types, and between address spaces."""

from __future__ import annotations

from .operation import INTEGERS, SPACE, TYPES, Operation, flags, translates

_TO_INTEGER = {"rni": "nearest", "rzi": "zero", "rmi": "down", "rpi": "up"}
_FROM_FLOAT = {"rn": "nearest", "rz": "zero", "rm": "down", "rp": "up", "rna": "away"}
_SIXTEEN = ("f16", "bf16")
_PLAIN = ("f16", "bf16", "f32", "f64")


@translates("cvt")
def convert(op: Operation) -> str:
    """Conversions of one number, and of two floats to a pair."""
    integral, rounding = op.pick(*_TO_INTEGER), op.pick(*_FROM_FLOAT)
    ftz, sat, finite, relu = op.flag("ftz"), op.flag("sat"), op.flag("satfinite"), op.flag("relu")
    if op.words[:1] == ["tf32"]:
        return _to_tf32(op, rounding, relu, finite)
    to = op.type()
    source = op.type()
    mode = f"{SPACE}Round::{_TO_INTEGER.get(integral) or _FROM_FLOAT.get(rounding) or 'nearest'}"
    if to in ("f16x2", "bf16x2"):
        op.finish(3)
        if source != "f32" or integral or rounding not in ("rn", "rz") or sat:
            raise op.unknown()
        parameters = ", ".join([TYPES[to], mode, *flags(relu, finite)])
        return op.put(op.operands[0], f"{SPACE}convert_pair<{parameters}>({op.values('f32')})")
    op.finish(2)
    if not _may_convert(to, source, integral, rounding) or ((relu or finite) and to not in _SIXTEEN):
        raise op.unknown()
    rounds_to_whole = bool(integral) or to in INTEGERS
    parameters = ", ".join([TYPES[to], TYPES[source], mode, *flags(rounds_to_whole, ftz, sat, relu, finite)])
    return op.put(op.operands[0], f"{SPACE}convert<{parameters}>({op.values(source)})")


def _may_convert(to: str, source: str, integral: str, rounding: str) -> bool:
    if to in INTEGERS and source in INTEGERS:
        return not integral and not rounding and "b" not in to + source
    if to in INTEGERS:
        return source in _PLAIN and bool(integral) and not rounding
    if to not in _PLAIN or rounding == "rna" or (to in _SIXTEEN and rounding in ("rm", "rp")):
        return False
    if source in INTEGERS:
        return bool(rounding) and not integral
    if source not in _PLAIN or (integral and rounding):
        return False
    return bool(integral or rounding) or _widens(to, source)


def _widens(to: str, source: str) -> bool:
    return to == source or int(to.lstrip("bf")) > int(source.lstrip("bf"))


def _to_tf32(op: Operation, rounding: str, relu: bool, finite: bool) -> str:
    op.words.pop(0)
    op.type("f32")
    op.finish(2)
    if rounding not in ("rna", "rn", "rz") or finite:
        raise op.unknown()
    parameters = ", ".join([f"{SPACE}Round::{_FROM_FLOAT[rounding]}", *flags(relu)])
    return op.put(op.operands[0], f"{SPACE}convert_to_tf32<{parameters}>({op.values('f32')})")


@translates("cvta")
def convert_address(op: Operation) -> str:
    """Addresses of shared memory are generic addresses that fit into 32 bits."""
    op.flag("to")
    space = op.choose("shared", "shared::cta", "global", "const", "local", "param")
    kind = op.type("u32", "u64")
    op.finish(2)
    value = op.value(op.operands[1], kind)
    return op.put(op.operands[0], f"{SPACE}shared_address({value})" if space.startswith("shared") else value)


@translates("isspacep")
def is_in_space(op: Operation) -> str:
    """Whether an address is in shared, or in global memory."""
    space = op.choose("shared", "shared::cta", "global")
    op.finish(2)
    sign = "<" if space.startswith("shared") else ">="
    return op.put(op.operands[0], f"({op.value(op.operands[1], 'b64')} {sign} {SPACE}shared_end)")
