"""Tests of the rules for reading a response, one by one. `test_choice.py` tests complete responses."""

from __future__ import annotations

import pytest

from inlinebench.response import Block, NoSolution, blocks, choose
from inlinebench.response.python import read, string_after

M = "class ModelNew: pass\n"
RULES = {
    "a fence after a number": (f"2) ```python\n   {M}   ```\n", [M]),
    "an indentation of a tab": ("\t```py\n\tclass ModelNew:\n\t\tpass\n\t```\n", ["class ModelNew:\n\tpass\n"]),
    "a tab is four columns": (f"\t```py\n    {M}    ```\n", [M]),
    "an indentation loses no more than the fence's": (f" ```py\n   {M} ```\n", [f"  {M}"]),
    "inline code in prose opens no block": (f"```ModelNew``` is this:\n```\n{M}```\n", [M]),
    "inline code in a block does not close it": ("```sh\n```x``` y\n```\n", ["```x``` y\n"]),
    "a fence of the other kind does not close a block": ("~~~sh\n```\nx\n~~~\n", ["```\nx\n"]),
    "a shorter fence does not close a block": ("````sh\n```py\n```\n````\n", ["```py\n```\n"]),
    "only text is a wrapper": (f"````sh\n```\n{M}```\n````\n````txt\n```\n{M}```\n````\n", [f"```\n{M}```\n", M]),
    "an open fence at the end is not a block": (f"```\n{M}```\n```\n\n", [M]),
    "a closed block may be empty": ("```\n```\n", [""]),
    "reasoning ends wrappers": (f"<think>\n```md\n</think>\n```\n{M}```\n", [M]),
    "reasoning ends bare Python": (f"{M}<think>\n{M}</think>\n", [M]),
    "bare Python may follow reasoning": (f"<think>{M}</think>{M}", [M]),
    "reasoning begins and ends in one line": (f"<think></think><think></think>\n```\n{M}```\n", [M]),
}


@pytest.mark.parametrize(("text", "sources"), RULES.values(), ids=RULES)
def test_the_rule_holds(text: str, sources: list[str]) -> None:
    assert [block.source for block in blocks(text)] == sources
    assert not any(block.in_reasoning for block in blocks(text))


@pytest.mark.parametrize(("text", "in_reasoning"), [
    (f"```\n{M}```\n</think>", True), (f"```\n{M}```\n</THINKING>", True), (f"<thought>\n```\n{M}```\n", True),
    (f"```\n{M}```\n`</think>`", False), (f"```\n{M}```\n`</think> ends`", False), (f"```\n{M}```\n`x</think>`", False),
    (f"```\n{M}```\n</answer>", False), (f"The tag <think>\n```\n{M}```\n", False),
    (f"<think></think>\n```\n{M}```\n</think>", False),
])
def test_tags_decide_what_belongs_to_the_reasoning(text: str, in_reasoning: bool) -> None:
    assert [block.in_reasoning for block in blocks(text)] == [in_reasoning]


def test_names_of_a_later_block_are_missing() -> None:
    chosen = choose("```\nx = 1\n```\n```\nclass ModelNew: a = x + y + torch\n```\n```\ny = 1\n```\n")
    assert chosen.why == (
        "block 2 of 3 (untagged, 1 line from line 5) is the only block that defines ModelNew; "
        "it uses x from block 1, but blocks are not joined; it uses torch and y, which it neither defines nor imports"
    )


def test_long_lists_in_messages_are_shortened() -> None:
    names = "".join(f"```\nx{index} = 1\n```\n" for index in range(9))
    uses = " + ".join(f"x{index}" for index in range(9))
    assert "; it uses x0, x1, x2, x3 and 5 more from blocks 1, 2, 3, 4 and 5 more, but" in choose(
        f"{names}```\nclass ModelNew: a = {uses}\n```").why
    kinds = "".join(f"```l{index}\n{'?' * index}\n```\n" for index in range(9))
    with pytest.raises(NoSolution, match=r"18 code blocks, none defines ModelNew: 9 untagged of 1 line each, 1 l0 of 1 "
                                         r"line, 1 l1 of 1 line, 1 l2 of 1 line, 6 more languages$"):
        choose(names + kinds)
    lengths = "".join("```py\n" + "x\n" * index + "```\n" for index in range(9))
    with pytest.raises(NoSolution, match="9 py of 0 to 8 lines; line 56 has class ModelNew outside all blocks"):
        choose(lengths.rstrip() + "\n\nclass ModelNew(\nclass ModelNew(\n")


def test_blocks_have_position_language_source_and_error() -> None:
    code = 'x = """\nclass ModelNew: pass'
    assert blocks(f"{code}\n```c++\nint x;\n```\n```\n```\n~~~Python\nclass ModelNew:\n") == (
        Block(1, "c++", 4, "int x;\n", True, False, False, "line 4: invalid syntax"),
        Block(2, "", 7, "", True, False, False),
        Block(3, "python", 9, "class ModelNew:\n", False, False, False,
              "line 9: expected an indented block after class definition on line 9"),
    )
    assert blocks("") == blocks("Nothing.") == ()


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_response_is_rejected(text: str) -> None:
    with pytest.raises(NoSolution, match=r"the response is empty|no code block in 1 line"):
        choose(text)


@pytest.mark.parametrize(("source", "error"), [
    ("x\0", "null bytes"), ("'\ud800'", "surrogate"), ("nonlocal x", "nonlocal"), ("'\\d'", ""),
    ("-" * 100_000 + "1", "too deeply"), ("x" + ".y" * 400_000, "too deeply"),
])
def test_invalid_python_has_an_error(source: str, error: str) -> None:
    reading = read(source)
    assert error in reading.error and bool(error) == bool(reading.error)


@pytest.mark.parametrize(("source", "defines"), [
    ("class ModelNew: pass", True), ("with x:\n  for y in z:\n    class ModelNew: pass", True),
    ("class A: pass\nModelNew = A", True), ("ModelNew = A", False), ("from a import ModelNew", False),
    ("class A:\n  class ModelNew: pass", False), ("def ModelNew(): pass", False), ("'class ModelNew: pass'", False),
])
def test_a_class_at_module_level_defines_the_model(source: str, defines: bool) -> None:
    assert read(source).defines_model is defines


def test_missing_names_are_used_but_not_bound() -> None:
    source = (
        "import a\n"
        "class ModelNew(b.C):\n  x = len(d)\n  def f(self, g):\n    h = g + x + i\n    return [h + j for j in a]"
    )
    assert read(source).missing == {"b", "d", "i", "x"}
    assert read(source).bound == {"a", "ModelNew"}
    assert read("from b import *\n" + source).missing == frozenset()
    assert read("def late():\n  global b, d, i, x\n  b = d = i = x = 1\n" + source).missing == frozenset()


@pytest.mark.parametrize(("line", "before", "after"), [
    ("x = 1", "", ""), ('x = """', "", '"""'), ("x = r'''a", "", "'''"), ('"""', '"""', ""), ('x = "a"""', "", ""),
    ("'''", '"""', '"""'), ('# """', "", ""), ('"#" + """', "", '"""'), (r'\"""', '"""', '"""'), ("don't", "", ""),
    ("'a\\", "", "'"), ("b'", "'", ""), ('""""""', "", ""), ('"""a""" """', "", '"""'),
])
def test_strings_continue_or_end_at_the_end_of_a_line(line: str, before: str, after: str) -> None:
    assert string_after(line + "\n", before) == after
