"""Properties of every response: a fenced source is returned unchanged, and any text is read in linear time."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.response import NoSolution, blocks, choose, scan, solutions

MODEL = "class ModelNew(Base):\n    def forward(self, x):\n        return x\n"
ANY_CHARACTER = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
STATEMENTS = st.one_of(
    st.sampled_from([
        "import torch\n", "\n", "\f\n", "   \n", "if True:\n    pass\n", "# ```python\n", "x = 'it'  # don't \"\"\"\n",
        'FENCES = """\n```\n~~~\n```python\n"""\n', "'''\n</think>\n<think>\n'''\n", "s = 'a\\\n```\\\nb'\n",
        'r = r"""\\""""\n', 'END = "</think>"  # </think>\n', "t = ''''''\n", "    # a comment\n", "u = [\n1,\n\n  2]\n"
    ]),
    st.text(ANY_CHARACTER).map(lambda text: f"# {text}\n".replace("\n", "\n# ") + "\n"),
    st.text(ANY_CHARACTER).map(lambda text: f"v = {text!r}\n"),
    st.text(st.sampled_from("`~\n \"'\\#<>a")).map(
        lambda text: 'w = """' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""\n'),
)
SOURCES = st.tuples(st.lists(STATEMENTS), st.lists(STATEMENTS)).map(
    lambda parts: "".join([*parts[0], MODEL, *parts[1]]))
PROSE = st.text(ANY_CHARACTER).filter(lambda text: not re.search("```|~~~|<", text))
PIECES = st.sampled_from([
    "```", "````", "~~~", "`", "python", "cpp", "markdown", "\n", "\n\n", "\r\n", "\r", " ", "   ", "\t", "> ", "- ",
    "1. ", "'''", '"""', "'", '"', "\\", "#", "<think>", "</think>", "x = 1", "class ModelNew: pass\n", "def f(:",
    "don't", "\0", "\ud800", "\u2028", "\ufeff", "é",
])
ANSWERS = st.lists(PIECES, max_size=60).map("".join) | st.text()
FENCES = st.tuples(st.sampled_from("`~"), st.integers(0, 2), st.sampled_from(["", "python", "Py", " cuda x=1"]))


@given(SOURCES, PROSE, PROSE, FENCES, st.sampled_from(["\n", "\r\n"]))
def test_a_source_between_long_enough_fences_is_returned_unchanged(
    source: str, before: str, behind: str, kind: tuple[str, int, str], ends: str
) -> None:
    mark, longer, info = kind
    longest = max(map(len, re.findall(f"{mark}+", source)), default=0)
    fence = mark * (max(3, longest + 1) + longer)
    text = f"{before}\n{fence}{info}\n{source}{fence}\n{behind}".replace("\n", ends)
    block = choose(text).block
    assert block.source == source
    assert (block.complete, block.in_reasoning, block.error) == (True, False, "")


@given(SOURCES)
def test_bare_python_is_returned_unchanged(source: str) -> None:
    block = choose(source).block
    assert source.endswith(block.source) and not source.removesuffix(block.source).strip()
    assert not block.fenced


@given(ANSWERS)
def test_any_text_is_read(text: str) -> None:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = blocks(text)
    assert [block.index for block in found] == list(range(1, len(found) + 1))
    for block in found:  # its lines are those of the response, without their prefix
        there = lines[block.first_line - 1:][:block.lines]
        assert all(line.endswith(own) for line, own in zip(there, block.source.split("\n"), strict=False))
    for earlier, later in pairwise(found):
        assert earlier.first_line + earlier.lines <= later.first_line
    try:
        assert choose(text).block == solutions(text)[-1]
    except NoSolution as error:
        assert error.blocks == found and "\n" not in str(error)


HOSTILE = {
    "strings that never end": '```py\nx = = \\"""\n```\n',
    "openings only": "```py\n'''\n",
    "tags": "<think></think>\nx\n",
    "strings behind tags": "<think></think>\\'''\n",
    "ends of reasoning": "</think>\nclass ModelNew: pass\n",
    "tags in open blocks": "```py\n</think>\n",
    "fences in wrappers": "```\n~~~py\n",
    "whole blocks": "```\nclass ModelNew: pass\n```\n",
    "backticks": "`", "quotations": "> ", "quotes": "'\"", "backslashes": "\\", "lines": "\n", "angles": "<",
    "digits": "1",
}


def work(text: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Returns how many characters a scan reads for each character of the text."""
    looked = 0

    def counted(function: object) -> object:
        def call(text: str, *more: str) -> object:
            nonlocal looked
            looked += len(text)
            return function(text, *more)  # type: ignore[operator]
        return call

    with monkeypatch.context() as patch:
        for name in ("read", "string_after", "opening"):
            patch.setattr(scan, name, counted(getattr(scan, name)))
        scan.Scan(text)
    return looked / len(text)


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_the_work_is_proportional_to_the_length(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(piece * (40_000 // len(piece)), monkeypatch) < 3 * (scan.LOOK_AHEAD + 3)


@pytest.mark.parametrize("behind", ["py\n</think>\n", "\nx\n", "md\n"])
def test_fences_of_decreasing_length_do_not_increase_the_work(behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join("`" * length + behind for length in range(300, 2, -1))
    assert work(text, monkeypatch) < 3 * (scan.LOOK_AHEAD + 3)


def test_without_the_bound_the_work_would_be_quadratic(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "LOOK_AHEAD", 10**9)
    assert work(HOSTILE["strings that never end"] * 500, monkeypatch) > 100


def test_a_long_response_is_read_completely() -> None:
    prose = "The grid covers all elements, and it doesn't matter in which order; see `k` and ``` there.\n" * 10_000
    source = 'SOURCE = """\n' + "```\nint x;\n```\n" * 5_000 + '"""\n' + MODEL
    block = choose(f"<think>\n{prose}</think>\n{prose}```python\n{source}```\n{prose}").block
    assert block.source == source
