"""Loads, stores, atomics and asynchronous copies."""

from __future__ import annotations

import re

from .operation import SPACE, TYPES, Operation, fence, flags, translates
from .syntax import Immediate, Name, Operand

_SHARED = ("shared", "shared::cta")
_SPACES = (*_SHARED, "global", "const", "local")
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
_HINT = "L2::cache_hint"
_LEVELS = re.compile(r"L1::(evict_\w+|no_allocate)|L2::(evict_\w+|64B|128B|256B)")
_FLOATS = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def _drop_hints(op: Operation) -> int:
    """Takes the words about caches, which change no value. Returns how many operands belong to them."""
    hinted = op.flag(_HINT)
    op.drop(*_CACHES, *filter(_LEVELS.fullmatch, op.words))
    return int(hinted)


def _space(op: Operation) -> str:
    """Takes the state space, and returns the function that checks addresses in it."""
    return f"{SPACE}shared" if op.pick(*_SPACES) in _SHARED else f"{SPACE}generic"


@translates("ld", "ldu")
def load(op: Operation) -> str:
    """Loads of one value or a vector."""
    ordering, space, parameters, _, parts = _vector(op, "acquire", register=0)
    loaded = f"const auto loaded = {SPACE}load<{parameters}>({space}({op.address(op.operands[1])}));"
    return f"{loaded} {ordering} {' '.join(op.put(part, f'loaded.value[{index}]') for index, part in enumerate(parts))}"


@translates("st")
def store(op: Operation) -> str:
    """Stores of one value or a vector."""
    ordering, space, parameters, kind, parts = _vector(op, "release", register=1)
    values = f"{SPACE}Values<{TYPES[kind]}, {len(parts)}>{{{{{op.values(kind, parts)}}}}}"
    return f"{ordering} {SPACE}store<{parameters}>({space}({op.address(op.operands[0])}), {values});"


def _vector(op: Operation, ordering: str, register: int) -> tuple[str, str, str, str, tuple[Operand, ...]]:
    """Reads a load or a store, whose operand number `register` is a register or a vector of them.

    `ordering` is the word for an access that orders others. Returns the statement of the fence that it needs, the
    function that checks the address, the template's parameters, the type, and the registers.
    """
    mapped = op.flag("mmio")
    order = op.pick(ordering, "relaxed", "volatile", "weak")
    if mapped and order != "relaxed":
        raise op.unknown()
    block = op.block_scope()
    strength = "weak" if order in ("", "weak") else "block" if block else "device"
    if strength == "weak" and "nc" in op.words:
        strength = "read_only"
    hints = _drop_hints(op)
    space = _space(op)
    count = int((op.pick("v2", "v4", "v8") or "v1")[1:])
    kind = op.type(*(set(TYPES) - {"pred"}))
    op.finish(2 + hints)
    parts = op.vector(op.operands[register])
    if len(parts) != count:
        raise op.unknown()
    statement = fence(block, order) if order == ordering else ""
    return statement, space, f"{TYPES[kind]}, {count}, {SPACE}Strength::{strength}", kind, parts


@translates("atom", "red")
def atomic(op: Operation) -> str:
    """Atomic operations. A vector is one operation an element."""
    order = op.pick("relaxed", "acquire", "release", "acq_rel")
    block = op.block_scope()
    op.drop("noftz")
    hints = _drop_hints(op)
    space = _space(op)
    name = op.choose("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")
    count = int((op.pick("v2", "v4", "v8") or "v1")[1:])
    kind = op.type("u32", "s32", "u64", "s64", "b32", "b64", *_FLOATS)
    returns = op.name == "atom"
    op.finish((2 if returns else 1) + (2 if name == "cas" else 1) + hints)
    if (name in ("exch", "cas") and not returns) or (kind in _FLOATS and name not in ("add", "min", "max")):
        raise op.unknown()
    operands = op.operands[1:] if returns else op.operands
    results = op.vector(op.operands[0]) if returns else (Name("_"),) * count
    address, sources = operands[0], [op.vector(operand) for operand in operands[1 : 3 if name == "cas" else 2]]
    if any(len(parts) != count for parts in (*sources, results)) or (name == "cas" and count > 1):
        raise op.unknown()
    start = f"auto* const at = {SPACE}target<{TYPES[kind]}, {count}>({space}({op.address(address)}));"
    steps = []
    for index, result in enumerate(results):
        values = op.values(kind, tuple(parts[index] for parts in sources))
        steps.append(op.put(result, f"{SPACE}atomic_{name}<{next(flags(block))}>(at + {index}, {values})"))
    before = [fence(block, "release")] if order in ("release", "acq_rel") else []
    after = [fence(block, "acquire")] if order in ("acquire", "acq_rel") else []
    return " ".join([*before, start, *steps, *after])


@translates("prefetch", "prefetchu", "applypriority")
def hint(op: Operation) -> str:
    """Hints, which have no effect."""
    op.drop("global", "local", "const", "param")
    op.choose("tensormap", "L1", "L2", "L2::evict_last", "L2::evict_normal")
    op.finish(2 if op.name == "applypriority" else 1)
    return ""


@translates("createpolicy")
def create_policy(op: Operation) -> str:
    """Cache policies, which have no effect. They are 0."""
    kind = op.choose("fractional", "range", "cvt")
    op.choose("b64")
    if kind == "cvt":
        op.choose("L2")
        op.finish(2)
    else:
        op.choose("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
        op.pick("L2::evict_first", "L2::evict_unchanged")
        op.drop("global")
        op.finish(*((1, 2) if kind == "fractional" else (4,)))  # without a fraction it is 1
    return op.put(op.operands[0], "std::uint64_t{0}")


@translates("cp")
def copy_async(op: Operation) -> str:
    """Asynchronous copies to shared memory: cp.async."""
    if not op.flag("async"):
        raise op.unknown()
    if op.flag("commit_group"):
        op.finish(0)
        return "::cuda_on_cpu::commit_copies();"
    if op.flag("wait_group"):
        op.finish(1)
        return f"::cuda_on_cpu::wait_for_copies({op.value(op.operands[0], 'u32')});"
    if op.flag("wait_all"):
        op.finish(0)
        return "::cuda_on_cpu::commit_copies(); ::cuda_on_cpu::wait_for_copies(0);"
    if op.flag("mbarrier"):
        return _arrive_after_copies(op)
    return _copy(op)


def _copy(op: Operation) -> str:
    cache = op.choose("ca", "cg")
    op.choose(*_SHARED)
    op.choose("global")
    hints = _drop_hints(op)
    op.finish(3 + hints, 4 + hints)
    to, source, size, *rest = op.operands[: len(op.operands) - hints]
    bytes_ = _size(op, size)
    if cache == "cg" and bytes_ in ("4u", "8u"):
        raise op.unknown()
    copied = bytes_
    if rest and op.is_predicate(rest[0]):
        copied = f"({op.predicate(rest[0])} ? 0u : {bytes_})"  # ignore-src
    elif rest:
        copied = op.value(rest[0], "u32")
    return f"{SPACE}copy_async({op.address(to)}, {op.address(source)}, {bytes_}, {copied});"


def _size(op: Operation, operand: Operand) -> str:
    if isinstance(operand, Immediate) and operand.text not in ("4", "8", "16"):
        raise op.unknown()
    return f"{operand.text}u" if isinstance(operand, Immediate) else op.value(operand, "u32")


def _arrive_after_copies(op: Operation) -> str:
    op.choose("arrive")
    counted = not op.flag("noinc")
    op.drop(*_SHARED)
    op.type("b64")
    op.finish(1)
    parameters = ", ".join(flags(counted))
    return f"{SPACE}arrive_after_copies<{parameters}>({op.address(op.operands[0])});"
