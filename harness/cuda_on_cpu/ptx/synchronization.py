"""Operations of warps, barriers of blocks, mbarriers and fences."""

from __future__ import annotations

import re

from .operation import SCOPES, SPACE, Operation, flags, translates
from .operation import fence as fence_statement
from .syntax import Address, Name, Operand

_SHARED = ("shared", "shared::cta")
_SHUFFLES = ("idx", "up", "down", "bfly")
# Words of fences between proxies, and for the initialisation of mbarriers alone. They order no other accesses.
_LESSER_FENCES = re.compile(
    r"proxy|async|async::generic|alias|shared::cta|shared|global|generic|mbarrier_init|release|cta|cluster|gpu|sys"
)


@translates("shfl")
def shuffle(op: Operation) -> str:
    """A value of another lane, and whether that lane is in the segment."""
    op.choose("sync")
    mode = op.choose(*_SHUFFLES)
    op.type("b32")
    op.finish(5)
    first, second = op.destinations()
    _, value, lane, clamp, mask = op.operands
    call = f"{SPACE}shuffle(\"shfl.{mode}\", {SPACE}Shuffling::{mode}, {op.values('b32', (value, lane, clamp, mask))})"
    return f"const auto moved = {call}; {op.put(first, 'moved.value')} {op.put(second, 'moved.inside')}"


@translates("vote")
def vote(op: Operation) -> str:
    """Votes of a warp."""
    op.choose("sync")
    mode = op.choose("all", "any", "uni", "ballot")
    op.type("b32" if mode == "ballot" else "pred")
    op.finish(3)
    result, predicate, mask = op.operands
    arguments = f"{op.value(mask, 'b32')}, {op.predicate(predicate)}"
    call = f"{SPACE}vote_uni({arguments})" if mode == "uni" else f"__{mode}_sync({arguments})"
    return op.put(result, call if mode == "ballot" else f"({call} != 0)")


@translates("match")
def match(op: Operation) -> str:
    """The lanes that hold the same value."""
    mode = op.choose("any", "all")
    op.choose("sync")
    kind = op.type("b32", "b64")
    op.finish(3)
    first, second = op.destinations()
    arguments = f"{op.value(op.operands[2], 'b32')}, {op.value(op.operands[1], kind)}"
    if mode == "any":
        return op.put(first, f"__match_any_sync({arguments})")
    matched = f"int equal; const std::uint32_t lanes = __match_all_sync({arguments}, &equal);"
    return f"{matched} {op.put(first, 'lanes')} {op.put(second, 'bool(equal)')}"


@translates("redux")
def reduce(op: Operation) -> str:
    """Reductions over a warp."""
    op.choose("sync")
    name = op.choose("add", "min", "max", "and", "or", "xor")
    kind = op.type(*(("b32",) if name in ("and", "or", "xor") else ("u32", "s32")))
    op.finish(3)
    result, value, mask = op.operands
    return op.put(result, f"__reduce_{name}_sync({op.value(mask, 'b32')}, {op.value(value, kind)})")


@translates("activemask")
def active_mask(op: Operation) -> str:
    """The lanes that are here together."""
    op.type("b32")
    op.finish(1)
    return op.put(op.operands[0], "__activemask()")


@translates("elect")
def elect(op: Operation) -> str:
    """The lowest lane of the mask, and whether this is it."""
    op.choose("sync")
    op.finish(2)
    first, second = op.destinations()
    call = f"const std::uint32_t elected = {SPACE}elect({op.value(op.operands[1], 'b32')});"
    return f"{call} {op.put(first, 'elected')} {op.put(second, '(elected == ::cuda_on_cpu::lane())')}"


@translates("bar", "barrier")
def barrier(op: Operation) -> str:
    """Barriers of a warp, of the block, and of some of its threads."""
    if op.flag("warp"):
        op.choose("sync")
        op.finish(1)
        return f"__syncwarp({op.value(op.operands[0], 'b32')});"
    op.drop("cta", "aligned")
    if op.flag("red"):
        return _reducing_barrier(op)
    mode = op.choose("sync", "arrive")
    op.finish(*((2,) if mode == "arrive" else (1, 2)))
    values = [op.value(operand, "u32") for operand in op.operands]
    return f"{SPACE}barrier_{mode}({', '.join(values)});"


def _reducing_barrier(op: Operation) -> str:
    name = op.choose("popc", "and", "or")
    op.type("u32" if name == "popc" else "pred")
    op.finish(3)
    result, number, predicate = op.operands
    function = {"popc": "__syncthreads_count", "and": "__syncthreads_and", "or": "__syncthreads_or"}[name]
    if getattr(number, "text", "") != "0":
        raise op.unknown()
    call = f"{function}({op.predicate(predicate)})"
    return op.put(result, f"static_cast<std::uint32_t>({call})" if name == "popc" else f"({call} != 0)")


@translates("fence", "membar")
def fence(op: Operation) -> str:
    """Fences."""
    if op.words and op.words[0] in ("proxy", "mbarrier_init") and all(map(_LESSER_FENCES.fullmatch, op.words)):
        op.words = []
        op.finish(0)
        return ""
    order = op.pick("acq_rel", "sc", "acquire", "release")
    if not any(scope in op.words for scope in SCOPES):
        raise op.unknown()
    statement = fence_statement(op.block_scope(), order)
    op.finish(0)
    return statement


@translates("mbarrier")
def mbarrier(op: Operation) -> str:
    """Barriers in shared memory."""
    name = op.choose("init", "inval", "arrive", "expect_tx", "complete_tx", "arrive_drop", "test_wait", "try_wait")
    if name == "arrive":
        name += "_expect" if op.flag("expect_tx") else ""
        op.drop("noComplete")  # it promises that the phase does not end
    parity, relaxed = op.flag("parity"), op.flag("relaxed")
    op.drop("release", "acquire", "cta", "cluster", *_SHARED)
    if name not in ("expect_tx", "complete_tx"):
        op.choose("b64")
    op.drop("b64")
    if name not in _MBARRIER:
        raise op.unknown()
    return _MBARRIER[name](op, parity, relaxed)


def _initialise(op: Operation, parity: bool, relaxed: bool) -> str:
    op.finish(2)
    return f"{SPACE}mbarrier_init({op.address(op.operands[0])}, {op.value(op.operands[1], 'u32')});"


def _invalidate(op: Operation, parity: bool, relaxed: bool) -> str:
    op.finish(1)
    return f"{SPACE}mbarrier_invalidate({op.address(op.operands[0])});"


def _arrive(op: Operation, parity: bool, relaxed: bool) -> str:
    result, address, count = _arrival(op)
    return op.put(result, f"{SPACE}mbarrier_arrive({op.address(address)}, {count}, 0u, {next(flags(relaxed))})")


def _arrive_expecting(op: Operation, parity: bool, relaxed: bool) -> str:
    result, address, count = _arrival(op)
    return op.put(result, f"{SPACE}mbarrier_arrive({op.address(address)}, 1u, {count}, {next(flags(relaxed))})")


def _arrival(op: Operation) -> tuple[Operand, Address, str]:
    """Returns the destination, the address and the count of an arrival. The destination may be left out."""
    op.finish(1, 2, 3)
    operands = op.operands if not isinstance(op.operands[0], Address) else (Name("_"), *op.operands)
    if len(operands) < 2 or not isinstance(operands[1], Address):
        raise op.unknown()
    return operands[0], operands[1], op.value(operands[2], "u32") if len(operands) > 2 else "1u"


def _expect(op: Operation, parity: bool, relaxed: bool) -> str:
    op.finish(2)
    return f"{SPACE}mbarrier_expect({op.address(op.operands[0])}, {op.value(op.operands[1], 'u32')});"


def _wait(op: Operation, parity: bool, relaxed: bool) -> str:
    op.finish(3, 4)
    result, address, phase = op.operands[:3]
    kind = "u32" if parity else "b64"
    call = f"{SPACE}mbarrier_wait<{', '.join(flags(parity, relaxed))}>({op.address(address)}, {op.value(phase, kind)})"
    return op.put(result, call)


_MBARRIER = {"init": _initialise, "inval": _invalidate, "arrive": _arrive, "arrive_expect": _arrive_expecting,
             "expect_tx": _expect, "test_wait": _wait, "try_wait": _wait}


@translates("nanosleep", "setmaxnreg", "griddepcontrol", "pmevent")
def nothing(op: Operation) -> str:
    """What changes only the time that a kernel takes."""
    op.words = []
    return ""


@translates("trap", "brkpt")
def trap(op: Operation) -> str:
    """Ends the kernel with an error."""
    op.finish(0)
    return f"__{op.name}();"
