"""Arithmetic, logic, comparisons and moves."""

from __future__ import annotations

from .operation import FLOATS, INTEGERS, SPACE, TYPES, Operation, flags, translates
from .syntax import Vector

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_SIGNS = {"and": "&", "or": "|", "xor": "^"}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@translates("add", "sub", "mul", "fma", "mad", "div")
def compute(op: Operation) -> str:
    """Sums, products and quotients."""
    kinds = [word for word in op.words if word in TYPES]
    if len(kinds) != 1:
        raise op.unknown()
    return _floating(op) if kinds[0] in FLOATS else _integral(op)


def _floating(op: Operation) -> str:
    kind = op.type()
    count = 3 if op.name in ("fma", "mad") else 2
    # An approximate quotient is within a few units of the last place, and so is the rounded one.
    approximate = op.name == "div" and op.flag("approx", "full")
    rounding = f"{SPACE}Round::nearest" if approximate else op.rounding()
    if kind not in ("f32", "f64") and not rounding.endswith("nearest"):
        raise op.unknown()
    ftz, sat = op.flag("ftz"), op.flag("sat")
    relu = op.name == "fma" and kind not in ("f32", "f64") and op.flag("relu")
    op.finish(count + 1)
    name = "fma" if count == 3 else op.name
    parameters = ", ".join([rounding, *flags(ftz, sat, relu)])
    return op.put(op.operands[0], f"{SPACE}{name}<{TYPES[kind]}, {parameters}>({op.values(kind)})")


def _integral(op: Operation) -> str:
    kind = op.type("u16", "u32", "u64", "s16", "s32", "s64")
    result, sources = op.operands[0], op.operands[1:]
    half = op.choose("lo", "hi", "wide") if op.name in ("mul", "mad") else ""
    saturates = op.name in ("add", "sub") and kind == "s32" and op.flag("sat")
    op.finish(4 if op.name == "mad" else 3)
    if half == "wide":
        wide = f"{kind[0]}{2 * int(kind[1:])}"
        product = f"{SPACE}multiply_wide<{TYPES[wide]}>({op.values(kind, sources[:2])})"
        kind = wide
    else:
        name = {"lo": "multiply_low", "hi": "multiply_high"}.get(half, f"{op.name}_integers")
        saturating = "<true>" if saturates else ""
        product = f"{SPACE}{name}{saturating}({op.values(kind, sources[:2])})"
    if op.name == "mad":
        product = f"{SPACE}add_integers({product}, {op.value(sources[2], kind)})"
    return op.put(result, product)


@translates("rem")
def remainder(op: Operation) -> str:
    """The remainder of integers."""
    kind = op.type("u16", "u32", "u64", "s16", "s32", "s64")
    op.finish(3)
    return op.put(op.operands[0], f"{SPACE}rem_integers({op.values(kind)})")


@translates("min", "max")
def extreme(op: Operation) -> str:
    """The smaller or larger value. A NaN loses, except with `.NaN`."""
    kind = op.type(*(INTEGERS - {"b8", "b16", "b32", "b64", "u8", "s8"}), *FLOATS)
    nan, ftz = (op.flag("NaN"), op.flag("ftz")) if kind in FLOATS else (False, False)
    op.finish(3)
    parameters = ", ".join([TYPES[kind], *flags(nan, ftz)])
    return op.put(op.operands[0], f"{SPACE}{op.name}<{parameters}>({op.values(kind)})")


@translates("abs", "neg")
def sign(op: Operation) -> str:
    """The absolute or the negative value."""
    kind = op.type("s16", "s32", "s64", *FLOATS)
    ftz = kind in FLOATS and op.flag("ftz")
    op.finish(2)
    parameters = ", ".join([TYPES[kind], *flags(ftz)])
    return op.put(op.operands[0], f"{SPACE}{op.name}<{parameters}>({op.values(kind)})")


@translates("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def function(op: Operation) -> str:
    """Mathematical functions. Approximate ones are rounded to nearest."""
    kind = op.type(*FLOATS) if op.name in ("ex2", "tanh") else op.type("f32", "f64")
    approximate = op.flag("approx")
    rounding = f"{SPACE}Round::nearest" if approximate else op.rounding()
    if not approximate and op.name not in ("rcp", "sqrt"):
        raise op.unknown()
    ftz = op.flag("ftz")
    op.finish(2)
    parameters = ", ".join([TYPES[kind], rounding, *flags(ftz)])
    return op.put(op.operands[0], f"{SPACE}{op.name}<{parameters}>({op.values(kind)})")


@translates("copysign")
def copy_sign(op: Operation) -> str:
    """The second source with the sign of the first."""
    kind = op.type("f32", "f64")
    op.finish(3)
    return op.put(op.operands[0], f"std::copysign({op.value(op.operands[2], kind)}, {op.value(op.operands[1], kind)})")


@translates("and", "or", "xor", "not", "cnot")
def logic(op: Operation) -> str:
    """Operations by bits, also on predicates."""
    kind = op.type("pred", "b16", "b32", "b64")
    count = 1 if op.name in ("not", "cnot") else 2
    op.finish(count + 1)
    if kind == "pred" and op.name == "cnot":
        raise op.unknown()
    values = [op.value(operand, kind) for operand in op.operands[1:]]
    if op.name == "not":
        value = f"!{values[0]}" if kind == "pred" else f"static_cast<{TYPES[kind]}>(~{values[0]})"
    elif op.name == "cnot":
        value = f"static_cast<{TYPES[kind]}>({values[0]} == 0)"
    else:
        value = f"static_cast<{TYPES[kind]}>({values[0]} {_SIGNS[op.name]} {values[1]})"
    return op.put(op.operands[0], value)


@translates("shl", "shr")
def shift(op: Operation) -> str:
    """Shifts. Those by the number of bits or more give 0, or copies of the sign."""
    kind = op.type("b16", "b32", "b64", *(["u16", "u32", "u64", "s16", "s32", "s64"] if op.name == "shr" else []))
    op.finish(3)
    result, value, amount = op.operands
    return op.put(result, f"{SPACE}{op.name}({op.value(value, kind)}, {op.value(amount, 'b32')})")


@translates("shf")
def funnel_shift(op: Operation) -> str:
    """A shift of two words together."""
    left = op.choose("l", "r") == "l"
    wraps = op.choose("wrap", "clamp") == "wrap"
    op.type("b32")
    op.finish(4)
    return op.put(op.operands[0], f"{SPACE}funnel_shift<{', '.join(flags(left, wraps))}>({op.values('b32')})")


@translates("lop3")
def lookup(op: Operation) -> str:
    """Any function of three bits, given as a table. Optionally also whether the result is not 0, and a predicate."""
    combine = op.pick("and", "or")
    op.type("b32")
    op.finish(6 if combine else 5)
    first, second = op.destinations()
    result = f"const std::uint32_t bits = {SPACE}lop3({op.values('b32', op.operands[1:5])}); {op.put(first, 'bits')}"
    if not combine:
        return result
    return f"{result} {op.put(second, f'bool((bits != 0) {_SIGNS[combine]} {op.predicate(op.operands[5])})')}"


@translates("prmt")
def permute(op: Operation) -> str:
    """Bytes of two words in any order."""
    mode = op.pick("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    op.type("b32")
    op.finish(4)
    if mode:
        raise op.unknown()
    return op.put(op.operands[0], f"__byte_perm({op.values('b32')})")


@translates("bfe")
def extract(op: Operation) -> str:
    """A field of bits."""
    kind = op.type("u32", "s32", "u64", "s64")
    op.finish(4)
    result, value, *place = op.operands
    return op.put(result, f"{SPACE}bfe({op.value(value, kind)}, {op.values('b32', tuple(place))})")


@translates("bfi")
def insert(op: Operation) -> str:
    """A word with a field of bits replaced."""
    kind = op.type("b32", "b64")
    op.finish(5)
    result, field, word, *place = op.operands
    return op.put(result, f"{SPACE}bfi({op.values(kind, (field, word))}, {op.values('b32', tuple(place))})")


@translates("popc", "clz", "brev")
def count_bits(op: Operation) -> str:
    """Counts and the reversal of bits."""
    kind = op.type("b32", "b64")
    op.finish(2)
    suffix = "ll" if kind == "b64" else ""
    return op.put(op.operands[0], f"__{op.name}{suffix}({op.values(kind)})")


@translates("dp4a")
def dot_product(op: Operation) -> str:
    """The products of four bytes, added up."""
    kinds = op.type("u32", "s32"), op.type("u32", "s32")
    op.finish(4)
    result, a, b, c = op.operands
    total = "s32" if "s32" in kinds else "u32"
    parameters = ", ".join(flags(kinds[0] == "s32", kinds[1] == "s32"))
    value = f"{SPACE}dp4a<{parameters}>({op.values('b32', (a, b))}, {op.value(c, 'b32')})"
    return op.put(result, f"{SPACE}as<{TYPES[total]}>({value})")


@translates("setp")
def compare(op: Operation) -> str:
    """Comparisons into predicates, optionally combined with another predicate."""
    comparison = op.choose(*_COMPARISONS)
    combine = op.pick("and", "or", "xor")
    kind = op.type(*(INTEGERS - {"b8", "u8", "s8"}), "f16", "bf16", "f32", "f64")
    ftz = kind in FLOATS and op.flag("ftz")
    op.finish(4 if combine else 3)
    if kind in FLOATS and comparison in _UNSIGNED_NAMES:
        raise op.unknown()
    name = _UNSIGNED_NAMES.get(comparison, comparison)
    operation = f"{SPACE}compare_{name}<{', '.join([TYPES[kind], *flags(ftz)])}>({op.values(kind, op.operands[1:3])})"
    first, second = op.destinations()
    other = op.predicate(op.operands[3]) if combine else "true"
    sign = _SIGNS[combine or "and"]
    both = f"const bool holds = {operation}, other = {other};"
    return f"{both} {op.put(first, f'bool(holds {sign} other)')} {op.put(second, f'bool(!holds {sign} other)')}"


@translates("selp")
def select(op: Operation) -> str:
    """One of two values, by a predicate."""
    kind = op.type(*(INTEGERS - {"b8", "u8", "s8"}), "f32", "f64")
    op.finish(4)
    result, yes, no, predicate = op.operands
    return op.put(result, f"({op.predicate(predicate)} ? {op.value(yes, kind)} : {op.value(no, kind)})")


@translates("mov")
def move(op: Operation) -> str:
    """Moves, also between a register and the vector of its parts."""
    kind = op.type(*(set(TYPES) - {"b8", "u8", "s8"}))
    op.finish(2)
    result, source = op.operands
    if isinstance(source, Vector):
        return op.put(result, _packed(op, source, kind))
    if isinstance(result, Vector):
        part = f"b{_bits(kind) // len(result.items)}"
        if part not in TYPES:
            raise op.unknown()
        whole = op.value(source, f"b{_bits(kind)}")
        pieces = [op.put(piece, f"static_cast<{TYPES[part]}>(whole >> {index * int(part[1:])})")
                  for index, piece in enumerate(result.items)]
        return f"const auto whole = {whole}; {' '.join(pieces)}"
    return op.put(result, op.value(source, kind))


def _bits(kind: str) -> int:
    return 32 if kind.endswith("x2") else int(kind.lstrip("busf"))


def _packed(op: Operation, source: Vector, kind: str) -> str:
    part, whole = f"b{_bits(kind) // len(source.items)}", f"b{_bits(kind)}"
    if part not in TYPES:
        raise op.unknown()
    pieces = [f"static_cast<{TYPES[whole]}>({op.value(piece, part)}) << {index * int(part[1:])}"
              for index, piece in enumerate(source.items)]
    return f"static_cast<{TYPES[whole]}>({' | '.join(pieces)})"


