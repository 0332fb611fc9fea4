"""Chooses the block of a response to evaluate, and explains the choice, or why no block can be evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inlinebench.response.blocks import Block, Response, look
from inlinebench.response.python import MODEL, read

MOST_NAMED = 4
"""The most languages, lengths or names in a list in a message."""

_CLASS = re.compile(rf"^[ \t]*class {MODEL}\b", re.MULTILINE)


class NoSolution(Exception):
    """No block of the response can be evaluated. The text is one line that says what the response contains.

    This is not a UsageError: the verdict of the response is `invalid`, and the run continues.
    """

    def __init__(self, message: str, blocks: tuple[Block, ...]) -> None:
        super().__init__(message)
        self.blocks = blocks


@dataclass(frozen=True)
class Chosen:
    """The chosen block of a response."""

    block: Block
    """The block to evaluate."""
    why: str
    """A sentence that says which block it is and why it was chosen."""
    others: tuple[Block, ...]
    """The other blocks that define ModelNew: earlier ones, drafts in the reasoning, unclosed ones."""


def choose(text: str) -> Chosen:
    """Returns the block of a response to evaluate: the last of `solutions`. Raises NoSolution if there is none."""
    response = look(text)
    eligible = _eligible(response)
    block = eligible[-1]
    others = tuple(other for other in response.blocks if other.defines_model and other is not block)
    return Chosen(block, _why(block, response, len(eligible)), others)


def solutions(text: str) -> tuple[Block, ...]:
    """Returns all closed blocks outside the reasoning that define ModelNew, in order, or else the unclosed ones.

    Raises NoSolution if there are none.
    """
    return _eligible(look(text))


def _eligible(response: Response) -> tuple[Block, ...]:
    defining = tuple(block for block in response.blocks if block.defines_model and not block.in_reasoning)
    if not defining:
        raise NoSolution(_nothing(response), response.blocks)
    return tuple(block for block in defining if block.complete) or defining


def _why(block: Block, response: Response, eligible: int) -> str:
    if not block.fenced:
        what = f"Python without an opening fence, from line {block.first_line}"
    else:
        what = f"{_language(block)}, {_count(block.lines, 'line')} from line {block.first_line}"
    open_ones = any(other.defines_model and not (other.complete or other.in_reasoning) for other in response.blocks)
    closed = "closed " if block.complete and open_ones else ""
    among = f"last of {eligible} {closed}blocks that define" if eligible > 1 else f"only {closed}block that defines"
    parts = [f"block {block.index} of {len(response.blocks)} ({what}) is the {among} {MODEL}"]
    if not block.complete:
        parts.append("it is not closed, so it may be cut off")
    parts += [*_missing(block, response.blocks), *_later(block, response.blocks)]
    if drafts := sum(other.defines_model and other.in_reasoning for other in response.blocks):
        parts.append(f"{_count(drafts, 'draft')} in the reasoning {'does' if drafts == 1 else 'do'} not count")
    return "; ".join(parts)


def _missing(block: Block, blocks: Sequence[Block]) -> list[str]:
    """Describes the names that a block uses but does not bind. Joining blocks that bind them would be a guess."""
    nowhere = set(read(block.source).missing)
    if not nowhere:
        return []
    owners = {other.index: nowhere & read(other.source).bound for other in blocks[:block.index - 1]}
    elsewhere = set().union(*owners.values())
    nowhere -= elsewhere
    parts = [f"it uses {_listed(sorted(nowhere))}, which it neither defines nor imports"] if nowhere else []
    if elsewhere:
        indices = [str(index) for index, names in owners.items() if names]
        where = f"block{'' if len(indices) == 1 else 's'} {_listed(indices)}"
        parts.insert(0, f"it uses {_listed(sorted(elsewhere))} from {where}, but blocks are not joined")
    return parts


def _later(block: Block, blocks: Sequence[Block]) -> list[str]:
    """Describes the last later block that has class ModelNew but was not chosen because of a flaw."""
    for other in reversed(blocks[block.index:]):
        if not other.in_reasoning and (other.defines_model or _CLASS.search(other.source)):
            flaw = f"is not valid Python ({other.error})" if other.error else "is not closed"
            if other.error or other.defines_model:
                return [f"block {other.index} after it has class {MODEL} too, but {flaw}"]
    return []


def _nothing(response: Response) -> str:
    """Describes a response without a usable block in one line."""
    blocks = response.blocks
    drafts = [block for block in blocks if block.defines_model]
    parts = [_inventory(response)]
    if blocks and not blocks[-1].complete:
        parts.append("the last one is not closed" if len(blocks) > 1 else "it is not closed")
    if drafts:
        parts.append(f"block {drafts[-1].index} in the reasoning defines it, but drafts in the reasoning do not count")
    for block in reversed(blocks):
        if not block.defines_model and not block.in_reasoning and _CLASS.search(block.source):
            flaw = f"is not valid Python ({block.error})" if block.error else "it is not at module level"
            parts.append(f"block {block.index} has class {MODEL}, but {flaw}")
            break
    if response.thinking is not None:
        parts.append(f"the reasoning that begins in line {response.thinking} has no end")
    if response.outside is not None:
        parts.append(f"line {response.outside} has class {MODEL} outside all blocks")
    return "; ".join(parts)


def _inventory(response: Response) -> str:
    """Returns a text such as "3 code blocks, none defines ModelNew: 1 cpp of 20 lines, 2 python of 12 and 4 lines"."""
    if not response.blocks:
        return f"no code block in {_count(response.lines, 'line')}" if response.lines else "the response is empty"
    by_language: dict[str, list[int]] = {}
    for block in response.blocks:
        by_language.setdefault(_language(block), []).append(block.lines)
    kinds = [f"{len(lengths)} {language} of {_lengths(lengths)}" for language, lengths in by_language.items()]
    more = [] if len(kinds) <= MOST_NAMED else [f"{len(kinds) - MOST_NAMED} more languages"]
    outside = " outside the reasoning" if any(block.defines_model for block in response.blocks) else ""
    none = "which doesn't define" if len(response.blocks) == 1 and not outside else f"none{outside} defines"
    return f"{_count(len(response.blocks), 'code block')}, {none} {MODEL}: {', '.join([*kinds[:MOST_NAMED], *more])}"


def _lengths(lengths: list[int]) -> str:
    if len(set(lengths)) == 1:
        return f"{_count(lengths[0], 'line')}{' each' if len(lengths) > 1 else ''}"
    if len(lengths) > MOST_NAMED:
        return f"{min(lengths)} to {max(lengths)} lines"
    return f"{_and(map(str, lengths))} lines"


def _language(block: Block) -> str:
    return block.language or ("untagged" if block.fenced else "bare")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return _and(names) if more <= 0 else f"{', '.join(names[:MOST_NAMED])} and {more} more"


def _and(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
