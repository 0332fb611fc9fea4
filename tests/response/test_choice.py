"""Tests of the choice of a response's code block. The responses in `responses/` imitate those of models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from inlinebench.errors import UsageError
from inlinebench.response import NoSolution, blocks, choose, solutions

FOLDER = Path(__file__).resolve().parent.parent / "responses"
INDENTED = {"list_item": "   ", "list_mark": "  ", "quotation": "> ?"}
"""The prefix that the lines of a block lose, as a regular expression."""


@dataclass(frozen=True)
class Taken:
    """The expected choice."""

    first: int
    """The first line of the source in the response, from 1."""
    last: int
    """The last line of the source."""
    says: str = "is the only block that defines ModelNew"
    """A part of the explanation."""
    others: tuple[int, ...] = ()
    """The other blocks that define ModelNew."""


DRAFT = "is the only block that defines ModelNew; 1 draft in the reasoning does not count"
BARE = "block 1 of 1 (Python without an opening fence, from line 1) is the only block that defines ModelNew"
TAKEN = {
    "plain": Taken(5, 38, "block 1 of 1 (python, 34 lines from line 5) is the only block that defines ModelNew"),
    "unicode": Taken(4, 14),
    "untagged": Taken(3, 8, "block 1 of 2 (untagged, 6 lines from line 3) is"),
    "wrong_tag": Taken(2, 12, "block 1 of 1 (cuda, 11 lines from line 2) is"),
    "info_words": Taken(7, 13, "block 2 of 2 (python, 7 lines from line 7) is the last of 2 blocks that", (1,)),
    "class_in_if": Taken(2, 16),
    "alias": Taken(2, 16),
    # several blocks
    "versions": Taken(30, 39, "is the last of 3 blocks that define ModelNew; it uses vectorized", (1, 2)),
    "two_alternatives": Taken(22, 28, "the last of 2 blocks that define ModelNew; 1 draft in the reasoning", (1, 2)),
    "usage_after": Taken(4, 10, "block 1 of 3"),
    "cuda_between": Taken(19, 37, "block 3 of 4 (python, 19 lines from line 19)"),
    "split_source": Taken(24, 29, "; it uses CUDA_SOURCE, load_inline and nn from block 1, but blocks are not joined"),
    "sketch_last": Taken(14, 17, "; it uses nn from block 1, but blocks are not joined; it uses Twice, which it", (1,)),
    "syntax_error_behind_whole": Taken(2, 8, "has class ModelNew too, but is not valid Python (line 20: '(' was never"),
    # without a fence, or unclosed
    "bare": Taken(1, 22, BARE),
    "bare_fences_in_docstring": Taken(1, 34, BARE),
    "prefilled": Taken(1, 22, "block 1 of 2 (Python without an opening fence, from line 1) is"),
    "cut_off_but_python": Taken(2, 9, "only block that defines ModelNew; it is not closed, so it may be cut off"),
    "cut_off_behind_whole": Taken(4, 10, "is the only closed block that defines ModelNew; block 2 after it", (2,)),
    "forgotten_fence": Taken(11, 17, "block 2 of 2"),
    "open_string": Taken(13, 23, "block 2 of 2"),
    # other forms of fences
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
    "nested_class": "1 python of 9 lines; block 1 has class ModelNew, but it is not at module level",
    "syntax_error": "; block 1 has class ModelNew, but is not valid Python (line 9: '(' was never closed)",
    "cut_off": "1 python of 12 lines; it is not closed; block 1 has class ModelNew, but is not valid Python (line 12: ",
    "outside": "1 untagged of 1 line; it is not closed; line 5 has class ModelNew outside all blocks",
    "think_only": "1 code block, none outside the reasoning defines ModelNew: 1 python of 4 lines; "
                  "block 1 in the reasoning defines it, but drafts in the reasoning do not count",
    "think_without_end": "drafts in the reasoning do not count; the reasoning that begins in line 1 has no end",
}


def response(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def source_of(name: str) -> str:
    """Returns the lines that the table names, without their prefix."""
    lines = response(name).splitlines(keepends=True)[TAKEN[name].first - 1:TAKEN[name].last]
    return "".join(re.sub(f"^{INDENTED.get(name, '')}", "", line) for line in lines)


def test_every_response_is_in_a_table() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == TAKEN.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", TAKEN)
def test_the_right_block_is_chosen(name: str) -> None:
    chosen = choose(response(name))
    assert chosen.block.source == source_of(name)
    assert chosen.block.first_line == TAKEN[name].first
    assert TAKEN[name].says in chosen.why and "\n" not in chosen.why
    assert tuple(other.index for other in chosen.others) == TAKEN[name].others
    assert chosen.block == solutions(response(name))[-1]
    compile(chosen.block.source, name, "exec")


@pytest.mark.parametrize("name", REFUSED)
def test_a_response_without_a_usable_block_is_described(name: str) -> None:
    for take in (choose, solutions):
        with pytest.raises(NoSolution) as caught:
            take(response(name))
        assert REFUSED[name] in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.blocks == blocks(response(name))
    assert not isinstance(caught.value, UsageError)  # the response is invalid; the run continues


@pytest.mark.parametrize("name", [*TAKEN, *REFUSED])
@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(name: str, ends: str) -> None:
    assert blocks("\ufeff" + response(name).replace("\n", ends)) == blocks(response(name))


@pytest.mark.parametrize("name", [*TAKEN, *REFUSED])
def test_a_response_may_be_cut_off_anywhere(name: str) -> None:
    text = response(name)
    for end in range(0, len(text), 7):
        try:
            assert "class ModelNew" in (source := choose(text[:end]).block.source) or "ModelNew =" in source
        except NoSolution as error:
            assert str(error)


def test_solutions_are_all_closed_blocks_outside_the_reasoning() -> None:
    assert [block.index for block in solutions(response("two_alternatives"))] == [2, 3]
    assert [block.index for block in solutions(response("cut_off_behind_whole"))] == [1]
    assert [block.index for block in solutions(response("cut_off_but_python"))] == [1]
