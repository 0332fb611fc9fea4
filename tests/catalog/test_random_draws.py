from __future__ import annotations

import ast

import pytest

from inlinebench.catalog import read
from inlinebench.catalog.random_draws import random_draws
from inlinebench.options import Options
from inlinebench.report.terminal.listing import listing

from ..running import TESTS

PROBLEM = """
import torch
from torch import nn
import torch.nn.functional as F

RATE = 0.0

class Block(nn.Module):
    def __init__(self, rate=0.0, other=0.1):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    return [torch.randn(3)]
"""


def draws(init: str = "pass", forward: str = "return x") -> tuple[str, ...]:
    return random_draws(ast.parse(PROBLEM.format(init=init, forward=forward)))


@pytest.mark.parametrize(("init", "forward", "expected"), [
    ("self.drop = nn.Dropout()", "return self.drop(x)", ("Dropout",)),
    ("self.drop = nn.Dropout(other)", "return self.drop(x)", ("Dropout",)),
    ("self.drop = nn.Dropout2d(p=0.2)", "return self.drop(x)", ("Dropout2d",)),
    ("self.layer = nn.TransformerEncoderLayer(8, 2)", "return self.layer(x)", ("TransformerEncoderLayer",)),
    ("pass", "return F.dropout(x)", ("dropout",)), ("pass", "return F.dropout(x, 0.3)", ("dropout",)),
    ("pass", "return x + torch.randn_like(x) * x.normal_() + torch.randn_like(x)", ("randn_like", "normal_")),
    ("pass", "return torch.bernoulli(x)", ("bernoulli",)),
])
def test_what_may_draw_in_forward_is_found(init: str, forward: str, expected: tuple[str, ...]) -> None:
    assert draws(init, forward) == expected


@pytest.mark.parametrize(("init", "forward"), [
    ("self.drop = nn.Dropout(0.0)", "return self.drop(x)"), ("self.drop = nn.Dropout(p=RATE)", "return self.drop(x)"),
    ("self.drop = nn.Dropout(rate)", "return self.drop(x)"), ("self.dropout = Other()", "return self.dropout(x)"),
    ("self.layer = nn.TransformerEncoderLayer(8, 2, dropout=0.0)", "return self.layer(x)"),
    ("self.bias = nn.Parameter(torch.randn(3))", "return x + self.bias"), ("pass", "return F.dropout(x, p=0)"),
    ("nn.init.normal_(torch.empty(3))", "return x"),
])
def test_initial_weights_inputs_and_dropout_without_a_rate_do_not_count(init: str, forward: str) -> None:
    assert draws(init, forward) == ()


def test_the_list_marks_problems_that_may_draw() -> None:
    text = listing(read(TESTS / "problems", TESTS / "solutions"), Options(names=("dropout", "centred")))
    assert "dropout: may draw random numbers in forward (Dropout)" in text and "centred: may" not in text
