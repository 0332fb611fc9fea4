"""The rules of reading an answer, one by one; whole answers are in `test_response.py`."""

from __future__ import annotations

import pytest

from inlinebench.response import Block, NoSolution, blocks, choose
from inlinebench.response.python import read, string_after

M = "class ModelNew: pass\n"
RULES = {
    "a fence behind a number": (f"2) ```python\n   {M}   ```\n", [M]),
    "an indentation of a tab": ("\t```py\n\tclass ModelNew:\n\t\tpass\n\t```\n", ["class ModelNew:\n\tpass\n"]),
    "a tab is four columns": (f"\t```py\n    {M}    ```\n", [M]),
    "an indentation loses no more than the fence's": (f" ```py\n   {M} ```\n", [f"  {M}"]),
    "code in a line of prose opens nothing": (f"```ModelNew``` is this:\n```\n{M}```\n", [M]),
    "code in a line of a block ends nothing": ("```sh\n```x``` y\n```\n", ["```x``` y\n"]),
    "a fence of the other kind ends nothing": ("~~~sh\n```\nx\n~~~\n", ["```\nx\n"]),
    "a shorter fence ends nothing": ("````sh\n```py\n```\n````\n", ["```py\n```\n"]),
    "only text is a wrapper": (f"````sh\n```\n{M}```\n````\n````txt\n```\n{M}```\n````\n", [f"```\n{M}```\n", M]),
    "an open fence at the end is no block": (f"```\n{M}```\n```\n\n", [M]),
    "a closed block may be empty": ("```\n```\n", [""]),
    "reasoning ends wrappers": (f"<think>\n```md\n</think>\n```\n{M}```\n", [M]),
    "reasoning ends bare Python": (f"{M}<think>\n{M}</think>\n", [M]),
    "bare Python begins behind reasoning": (f"<think>{M}</think>{M}", [M]),
    "reasoning begins and ends in one line": (f"<think></think><think></think>\n```\n{M}```\n", [M]),
}


@pytest.mark.parametrize(("text", "sources"), RULES.values(), ids=RULES)
def test_a_rule(text: str, sources: list[str]) -> None:
    assert [block.source for block in blocks(text)] == sources
    assert not any(block.in_reasoning for block in blocks(text))


@pytest.mark.parametrize(("text", "in_reasoning"), [
    (f"```\n{M}```\n</think>", True), (f"```\n{M}```\n</THINKING>", True), (f"<thought>\n```\n{M}```\n", True),
    (f"```\n{M}```\n`</think>`", False), (f"```\n{M}```\n`</think> ends`", False), (f"```\n{M}```\n`x</think>`", False),
    (f"```\n{M}```\n</answer>", False), (f"The tag <think>\n```\n{M}```\n", False),
    (f"<think></think>\n```\n{M}```\n</think>", False),
])
def test_what_belongs_to_the_reasoning(text: str, in_reasoning: bool) -> None:
    assert [block.in_reasoning for block in blocks(text)] == [in_reasoning]


def test_names_of_a_later_block_are_just_missing() -> None:
    chosen = choose("```\nx = 1\n```\n```\nclass ModelNew: a = x + y + torch\n```\n```\ny = 1\n```\n")
    assert chosen.why == (
        "block 2 of 3 (untagged, 1 line from line 5) is the only one that defines ModelNew; "
        "it uses x of block 1, and blocks are not joined; it uses torch and y, which it neither defines nor imports"
    )


def test_many_things_are_summed_up() -> None:
    names = "".join(f"```\nx{index} = 1\n```\n" for index in range(9))
    uses = " + ".join(f"x{index}" for index in range(9))
    assert "; it uses x0, x1, x2, x3 and 5 more of blocks 1, 2, 3, 4 and 5 more, and" in choose(
        f"{names}```\nclass ModelNew: a = {uses}\n```").why
    kinds = "".join(f"```l{index}\n{'?' * index}\n```\n" for index in range(9))
    with pytest.raises(NoSolution, match=r"18 code blocks, none defines ModelNew: 9 untagged of 1 line each, 1 l0 of 1 "
                                         r"line, 1 l1 of 1 line, 1 l2 of 1 line, 6 more languages$"):
        choose(names + kinds)
    lengths = "".join("```py\n" + "x\n" * index + "```\n" for index in range(9))
    with pytest.raises(NoSolution, match="9 py of 0 to 8 lines; line 56 has class ModelNew outside every block"):
        choose(lengths.rstrip() + "\n\nclass ModelNew(\nclass ModelNew(\n")


def test_what_is_known_of_blocks() -> None:
    code = 'x = """\nclass ModelNew: pass'
    assert blocks(f"{code}\n```c++\nint x;\n```\n```\n```\n~~~Python\nclass ModelNew:\n") == (
        Block(1, "c++", 4, "int x;\n", True, False, False, "line 4: invalid syntax"),
        Block(2, "", 7, "", True, False, False),
        Block(3, "python", 9, "class ModelNew:\n", False, False, False,
              "line 9: expected an indented block after class definition on line 9"),
    )
    assert blocks("") == blocks("Nothing.") == ()


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_answer_is_refused(text: str) -> None:
    with pytest.raises(NoSolution, match=r"the answer is empty|no code block in 1 line"):
        choose(text)


@pytest.mark.parametrize(("source", "error"), [
    ("x\0", "null bytes"), ("'\ud800'", "surrogate"), ("nonlocal x", "nonlocal"), ("'\\d'", ""),
    ("-" * 100_000 + "1", "too deeply"), ("x" + ".y" * 400_000, "too deeply"),
])
def test_whatever_is_no_python_has_an_error(source: str, error: str) -> None:
    reading = read(source)
    assert error in reading.error and bool(error) == bool(reading.error)


@pytest.mark.parametrize(("source", "defines"), [
    ("class ModelNew: pass", True), ("with x:\n  for y in z:\n    class ModelNew: pass", True),
    ("class A: pass\nModelNew = A", True), ("ModelNew = A", False), ("from a import ModelNew", False),
    ("class A:\n  class ModelNew: pass", False), ("def ModelNew(): pass", False), ("'class ModelNew: pass'", False),
])
def test_what_defines_the_model(source: str, defines: bool) -> None:
    assert read(source).defines_model is defines


def test_which_names_a_text_lacks() -> None:
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
def test_where_strings_end(line: str, before: str, after: str) -> None:
    assert string_after(line + "\n", before) == after
