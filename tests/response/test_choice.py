"""Which block of a model's answer is evaluated. The answers in `responses/` are written as models write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from inlinebench.records.errors import UsageError
from inlinebench.response import NoSolution, blocks, choose, solutions

FOLDER = Path(__file__).resolve().parent.parent / "responses"
INDENTED = {"list_item": "   ", "list_mark": "  ", "quotation": "> ?"}
"""What the lines of a block lose, as a regular expression."""


@dataclass(frozen=True)
class Taken:
    """The lines of the answer, from 1, that must be the source to the letter; what must be said, and which blocks
    define ModelNew besides."""

    first: int
    last: int
    says: str = "is the only one that defines ModelNew"
    others: tuple[int, ...] = ()


DRAFT = "is the only one that defines ModelNew; 1 draft in the reasoning does not count"
BARE = "block 1 of 1 (Python without an opening fence, from line 1) is the only one that defines ModelNew"
TAKEN = {
    "plain": Taken(5, 38, "block 1 of 1 (python, 34 lines from line 5) is the only one that defines ModelNew"),
    "unicode": Taken(4, 14),
    "untagged": Taken(3, 8, "block 1 of 2 (untagged, 6 lines from line 3) is"),
    "wrong_tag": Taken(2, 12, "block 1 of 1 (cuda, 11 lines from line 2) is"),
    "info_words": Taken(7, 13, "block 2 of 2 (python, 7 lines from line 7) is the last of the 2 ones that", (1,)),
    "class_in_if": Taken(2, 16),
    "alias": Taken(2, 16),
    # other blocks around the one
    "versions": Taken(30, 39, "is the last of the 3 ones that define ModelNew; it uses vectorized", (1, 2)),
    "two_alternatives": Taken(22, 28, "the last of the 2 ones that define ModelNew; 1 draft in the reasoning", (1, 2)),
    "usage_after": Taken(4, 10, "block 1 of 3"),
    "cuda_between": Taken(19, 37, "block 3 of 4 (python, 19 lines from line 19)"),
    "split_source": Taken(24, 29, "; it uses CUDA_SOURCE, load_inline and nn of block 1, and blocks are not joined"),
    "sketch_last": Taken(14, 17, "; it uses nn of block 1, and blocks are not joined; it uses Twice, which it", (1,)),
    "syntax_error_behind_whole": Taken(2, 8, "has class ModelNew too, but is not valid Python (line 20: '(' was never"),
    # no fence, or half of one
    "bare": Taken(1, 22, BARE),
    "bare_fences_in_docstring": Taken(1, 34, BARE),
    "prefilled": Taken(1, 22, "block 1 of 2 (Python without an opening fence, from line 1) is"),
    "cut_off_but_python": Taken(2, 9, "is the only one that defines ModelNew; it isn't closed, so it may be cut off"),
    "cut_off_behind_whole": Taken(4, 10, "is the only closed one that defines ModelNew; block 2 behind it", (2,)),
    "forgotten_fence": Taken(11, 17, "block 2 of 2"),
    "open_string": Taken(13, 23, "block 2 of 2"),
    # fences of other shapes
    "longer_fence": Taken(4, 19),
    "tildes": Taken(2, 14),
    "wrapper": Taken(9, 15, "block 2 of 2"),
    "wrapper_of_same_length": Taken(5, 11, "block 1 of 2"),
    "wrapper_untagged": Taken(7, 13, "block 1 of 2"),
    "docstring_fences": Taken(2, 22, "block 1 of 1"),
    "cuda_string_fences": Taken(2, 26, "block 1 of 2"),
    "list_item": Taken(4, 14),
    "list_mark": Taken(2, 8),
    "quotation": Taken(4, 10),
    "behind_prose": Taken(2, 8, "block 1 of 1"),
    "chat_marks": Taken(3, 9, "block 1 of 1"),
    # reasoning
    "think": Taken(17, 42, DRAFT, (1,)),
    "think_without_beginning": Taken(15, 35, DRAFT, (1,)),
    "think_with_open_fence": Taken(13, 32, DRAFT, (1,)),
    "think_closed_behind_fence": Taken(8, 15, DRAFT, (1,)),
    "think_then_bare": Taken(5, 25, "Python without an opening fence, from line 5"),
    "think_tag_in_code": Taken(6, 28),
}

REFUSED = {
    "refusal": "no code block in 2 lines",
    "cpp_only": "3 code blocks, none defines ModelNew: 1 cpp of 3 lines, 1 cuda of 6 lines, 1 python of 3 lines",
    "diff": "1 code block, which doesn't define ModelNew: 1 diff of 5 lines",
    "nested_class": "1 python of 9 lines; block 1 has class ModelNew, but not at module level",
    "syntax_error": "; block 1 has class ModelNew, but is not valid Python (line 9: '(' was never closed)",
    "cut_off": "1 python of 12 lines; it isn't closed; block 1 has class ModelNew, but is not valid Python (line 12: ",
    "outside": "1 untagged of 1 line; it isn't closed; line 5 has class ModelNew outside every block",
    "think_only": "1 code block, none outside the reasoning defines ModelNew: 1 python of 4 lines; "
                  "block 1 in the reasoning defines it, but a draft there is no answer",
    "think_without_end": "a draft there is no answer; the reasoning that begins in line 1 has no end",
}


def answer(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def source_of(name: str) -> str:
    """The lines that the table names, without their indentation."""
    lines = answer(name).splitlines(keepends=True)[TAKEN[name].first - 1:TAKEN[name].last]
    return "".join(re.sub(f"^{INDENTED.get(name, '')}", "", line) for line in lines)


def test_every_answer_has_its_line() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == TAKEN.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", TAKEN)
def test_the_block_that_is_taken(name: str) -> None:
    chosen = choose(answer(name))
    assert chosen.block.source == source_of(name)
    assert chosen.block.first_line == TAKEN[name].first
    assert TAKEN[name].says in chosen.why and "\n" not in chosen.why
    assert tuple(other.index for other in chosen.others) == TAKEN[name].others
    assert chosen.block == solutions(answer(name))[-1]
    compile(chosen.block.source, name, "exec")


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_without_a_usable_block_says_what_there_was(name: str) -> None:
    for take in (choose, solutions):
        with pytest.raises(NoSolution) as caught:
            take(answer(name))
        assert REFUSED[name] in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.blocks == blocks(answer(name))
    assert not isinstance(caught.value, UsageError)  # the answer is judged invalid; the run is in order


@pytest.mark.parametrize("name", [*TAKEN, *REFUSED])
@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_change_nothing(name: str, ends: str) -> None:
    assert blocks("\ufeff" + answer(name).replace("\n", ends)) == blocks(answer(name))


@pytest.mark.parametrize("name", [*TAKEN, *REFUSED])
def test_an_answer_may_be_cut_off_anywhere(name: str) -> None:
    text = answer(name)
    for end in range(0, len(text), 7):
        try:
            assert "class ModelNew" in (source := choose(text[:end]).block.source) or "ModelNew =" in source
        except NoSolution as error:
            assert str(error)


def test_all_solutions_are_the_closed_ones_outside_the_reasoning() -> None:
    assert [block.index for block in solutions(answer("two_alternatives"))] == [2, 3]
    assert [block.index for block in solutions(answer("cut_off_behind_whole"))] == [1]
    assert [block.index for block in solutions(answer("cut_off_but_python"))] == [1]
