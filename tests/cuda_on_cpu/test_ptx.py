"""What the translation of inline PTX reads, writes and refuses. What instructions compute is in test_conformance.py."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_on_cpu import Unsupported, translate
from cuda_on_cpu.ptx.operation import HANDLERS
from cuda_on_cpu.ptx.statement import AsmOperand
from cuda_on_cpu.ptx.syntax import (
    Address,
    Block,
    Immediate,
    Instruction,
    Label,
    Name,
    Operand,
    Pair,
    PtxError,
    Registers,
    Statement,
    Vector,
    parse,
)
from cuda_on_cpu.ptx.translation import to_cpp

# --- the parser -------------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(["p", "q", "r0", "a", "addr", "WAIT", "_"])
_NAMES = st.builds(Name, st.one_of(_WORDS, st.integers(0, 30).map(str), st.sampled_from(["laneid", "tid.x"])))
_NUMBERS = st.one_of(
    st.integers(-(2**31), 2**32).map(str), st.sampled_from(["0x7f", "0f3F800000", "0d3FF0000000000000", "1.5", "16U"])
).map(Immediate)
_SIMPLE = st.one_of(_NAMES, _NUMBERS)
_OPERANDS = st.one_of(
    _SIMPLE,
    st.lists(_SIMPLE, min_size=1, max_size=3).map(lambda terms: Address(tuple(terms))),
    st.lists(_SIMPLE, min_size=1, max_size=4).map(lambda items: Vector(tuple(items))),
    st.builds(Pair, _NAMES, _NAMES),
    st.builds(Name, _WORDS, st.just(True)),
)
_OPCODES = st.sampled_from(["mov.u32", "ld.shared::cta.v4.f32", "bar.sync", "cp.async.wait_all", "trap",
                           "cvt.rn.f16x2.f32"])
_GUARDS = st.one_of(st.none(), st.builds(Name, _WORDS, st.booleans()))
_INSTRUCTIONS = st.builds(Instruction, _OPCODES, st.lists(_OPERANDS, max_size=5).map(tuple), _GUARDS)
_REGISTERS = st.builds(
    Registers, st.sampled_from(["b32", "pred", "f16x2"]), st.lists(_WORDS, min_size=1, max_size=3).map(tuple)
)
_STATEMENTS = st.recursive(
    st.one_of(_INSTRUCTIONS, _REGISTERS, st.builds(Label, _WORDS)),
    lambda inner: st.lists(inner, max_size=4).map(lambda statements: Block(tuple(statements))),
    max_leaves=8,
)


def _written(operand: Operand) -> str:
    match operand:
        case Name(text, negated):
            return f"{'!' if negated else ''}{text if text[0].isalpha() or text == '_' else '%' + text}"
        case Immediate(text):
            return text
        case Address(terms):
            return f"[{'+'.join(map(_written, terms))}]"
        case Vector(items):
            return f"{{ {', '.join(map(_written, items))}}}"
        case Pair(first, second):
            return f"{_written(first)}|{_written(second)}"


def _text(statement: Statement) -> str:
    match statement:
        case Instruction(opcode, operands, guard):
            return f"{f'@{_written(guard)} ' if guard else ''}{opcode} {', '.join(map(_written, operands))};"
        case Registers(kind, names):
            return f".reg .{kind} {', '.join(names)};"
        case Label(name):
            return f"{name}:"
        case Block(statements):
            return f"{{ {' '.join(map(_text, statements))} }}"


@given(st.lists(_STATEMENTS, max_size=4), st.sampled_from([" ", "\n\t", " // note\n", "/* note; */"]))
def test_statements_are_read_as_they_are_written(statements: list[Statement], space: str) -> None:
    assert parse(space.join(map(_text, statements))) == tuple(statements)


_PIECES = st.sampled_from(
    ["mov.u32", "%0", "%1", "%%p", ",", ";", "{", "}", "[", "]", "@", "!", "|", ":", "+", "-", "<", ">", "4", "0x",
     ".reg",
     ".pred", "p", "bra", "setp.ne.s32", "//", "/*", "\n", " ", "ld.global.v2.u32", "é", "%=", ".", "\\"]
)
_ANY_TEXT = st.one_of(st.text(max_size=40), st.lists(_PIECES, max_size=25).map("".join),
                      st.lists(_PIECES, max_size=25).map(" ".join))
_TWO_WORDS = (AsmOperand("=r", "x"), AsmOperand("r", "y"))


@given(_ANY_TEXT)
def test_any_text_is_translated_to_one_line_or_refused(text: str) -> None:
    try:
        cpp = to_cpp(text, _TWO_WORDS)
    except PtxError:
        return
    assert cpp.startswith("do {") and cpp.endswith("} while (0)") and "\n" not in cpp


@given(st.sampled_from(sorted(HANDLERS)),
       st.lists(st.sampled_from(["rn", "u32", "f32", "b32", "sync", "x2", "nonsense"]), max_size=5))
def test_no_word_of_an_opcode_is_ignored(name: str, words: list[str]) -> None:
    if name in ("nanosleep", "setmaxnreg", "griddepcontrol", "pmevent"):
        return  # which change no value, whatever their words are
    opcode = ".".join([name, *words, "nonsense"])
    with pytest.raises(PtxError, match=re.escape(opcode)):
        to_cpp(f"{opcode} %0, %1;", _TWO_WORDS)


# --- whole sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "construct", "reason"),
    [
        ('asm volatile("wgmma.fence.sync.aligned;");', "`wgmma.fence.sync.aligned`", "wgmma"),
        ('asm("tcgen05.wait::ld.sync.aligned;");', "`tcgen05.wait::ld.sync.aligned`", "tcgen05"),
        ('asm("cp.async.bulk.tensor.2d.shared::cluster.global.tile [%0], [%1, {%2, %3}], [%4];" :: "r"(a));',
         "`cp.async.bulk.tensor.2d.shared::cluster.global.tile`", "TMA"),
        ('asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(a) : "r"(b));', "`mapa.shared::cluster.u32`", "clusters"),
        ('asm("barrier.cluster.arrive;");', "`barrier.cluster.arrive`", "clusters"),
        ('asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(a) : "h"(b));', "`cvt.rn.f16x2.e4m3x2`", "8-bit"),
        ('asm("mov.u32 %0, 1; bogus.u32 %0, %0;" : "=r"(a));', "`bogus.u32`", "this PTX"),
        ('asm("add.magic.u32 %0, %0, 1;" : "+r"(a));', "`add.magic.u32`", "this PTX"),
        ('asm("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0}, {%0}, {%0}, {%0};" : "+r"(a));',
         "`mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32`", "this PTX"),
        ('asm("mov.u32 %0, %smid;" : "=r"(a));', "`smid` in `mov.u32`", "this PTX"),
        ('asm("mov.u32 %0, %2;" : "=r"(a) : "r"(b));', "`2` in `mov.u32`", "this PTX"),
        ('asm("add.u32 %0, " #x ", 1;" : "=r"(a));', "text that the preprocessor makes of `#`", "this PTX"),
        ('asm("mov.u32 %0, 1;" : OUTPUTS);', "operands that a macro makes", "this PTX"),
        ('asm("mov.u32 %0, 1;" : "=q"(a));', 'the constraint "=q"', "this PTX"),
    ],
)
def test_unknown_ptx_is_refused_by_its_name(statement: str, construct: str, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        translate(f"__global__ void k() {{\n  {statement}\n}}")
    assert caught.value.construct == f"inline PTX {construct}" and caught.value.line == 2
    assert reason in str(caught.value).partition(": ")[2]


@pytest.mark.parametrize(
    "statement",
    [
        'asm volatile("mov.u32 %0, %laneid;"\n  : "=r"(x)  // the lane\n  :\n  : "memory");',
        '__asm__ __volatile__ ("{\\n\\t"\n  ".reg .pred p;\\n\\t"\n  "}\\n" ::);',
        'asm(R"(\n  add.u32 %0, %1, 1;\n)" : "=r"(x[0]) : "r"(f(a, b)\n + 1));',
        'if (a) asm volatile("bar.sync 0;"); else asm volatile("trap;");',
        '#define WAIT(n) asm volatile("cp.async.wait_group %0;\\n" \\\n  ::"n"(n))\nWAIT(2);',
    ],
)
def test_statements_keep_their_lines(statement: str) -> None:
    translated = translate(f"__device__ void f() {{\n{statement}\n}}")
    assert "asm" not in translated and translated.count("\n") == statement.count("\n") + 2
    for before, after in zip(statement.split("\n"), translated.split("\n")[1:-1], strict=True):
        assert before.endswith("\\") == after.endswith("\\")


def test_a_macros_parameters_do_not_stand_for_names_in_the_translation() -> None:
    source = '#define LOAD(value, x) asm("ld.global.u32 %0, [%1];" : "=r"(value.x) : "l"(x))\n'
    source += "#define OTHER(value) value\n"
    translated = translate(source)
    assert "LOAD(cuda_on_cpu_parameter_value, cuda_on_cpu_parameter_x)" in translated
    assert "= cuda_on_cpu_parameter_value.cuda_on_cpu_parameter_x;" in translated and "loaded.value[0]" in translated
    assert "#define OTHER(value) value" in translated


def test_text_may_come_from_macros_that_are_strings() -> None:
    source = '#define HINT ".L2::128B"\n'
    source += '__device__ void f() { asm("ld.global" HINT ".f32 %0, [%1];" : "=f"(x) : "l"(p)); }'
    assert "load<float, 1, ::cuda_on_cpu::ptx::Strength::weak>" in translate(source)
    with pytest.raises(Unsupported, match="`HINT`"):
        translate('#define HINT ".ca"\n' + source)
