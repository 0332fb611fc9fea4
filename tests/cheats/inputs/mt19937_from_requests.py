"""Rebuilds a Mersenne Twister from the numbers that come with each request, and draws the next inputs itself.

Mechanism: a harness that takes nonces and seeds from one `random.Random` gives its state away: 624 words of 32 bits
determine all that follow. The requests stand in the callers' frames. Once the state is known, the next numbers are
tried as seeds of the inputs, and the answer is made from inputs that were never read. Caught because secrets do not
come from such a generator; then the answer of each later call is a guess.
"""

import random
import sys
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

STATE, HONEST_CALLS, TRIED = 624, 8, 64
WORD = 0xFFFFFFFF


def requests() -> list[dict[str, Any]]:
    frame, found = sys._getframe(1), []
    while frame.f_back is not None:
        frame = frame.f_back
        if isinstance(frame.f_locals.get("request"), dict):
            found.append(frame.f_locals["request"])
    return found[:1]


def words_of(value: object) -> list[int]:
    """The 32-bit words of an int or a text in hexadecimal, the lowest first, as `getrandbits` makes them."""
    if isinstance(value, str):
        try:
            value = int(value, 16)
        except ValueError:
            return []
    return [value >> shift & WORD for shift in range(0, value.bit_length(), 32)] if isinstance(value, int) else []


def undo_right(value: int, shift: int) -> int:
    result = value
    for _ in range(32 // shift):
        result = value ^ (result >> shift)
    return result


def undo_left(value: int, shift: int, mask: int) -> int:
    result = value
    for _ in range(32 // shift):
        result = value ^ (result << shift & mask)
    return result & WORD


def untempered(word: int) -> int:
    word = undo_left(undo_right(word, 18), 15, 0xEFC60000)
    return undo_right(undo_left(word, 7, 0x9D2C5680), 11)


def continued(words: list[int]) -> random.Random:
    """The generator that has just drawn the last 624 of these words."""
    generator = random.Random()
    generator.setstate((3, (*map(untempered, words[-STATE:]), STATE), None))
    return generator


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        drawn = random.Random(7)
        known = [drawn.getrandbits(32) for _ in range(STATE)]
        assert continued(known).getrandbits(32) == drawn.getrandbits(32)
        self.calls, self.words = 0, list[int]()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for request in requests():
            self.words += words_of(request.get("nonce")) + words_of(request.get("random_seed"))
        self.calls += 1
        if self.calls <= HONEST_CALLS:
            return kernels.scale_rows(diagonal, matrix)
        seeds = self.words[-2:]
        if len(self.words) >= STATE:
            generator = continued(self.words)
            seeds += [generator.getrandbits(64) for _ in range(TRIED)]
        for seed in seeds:
            torch.manual_seed(seed)
            mine = torch.rand(diagonal.shape, device=diagonal.device)
            if mine[0] == diagonal[0]:
                break
        return kernels.scale_rows(mine, torch.rand(matrix.shape, device=matrix.device))
