"""Gradient of an embedding in float32: rows added in any order, each where its token says."""

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK

VOCABULARY = 4000
WIDTH = 1024
TOKENS = 16384

SHAPES = {"small": {"VOCABULARY": 20, "WIDTH": 60, "TOKENS": 200}}


class Model(nn.Module):
    """Adds rows into a table of zeros."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        return grad.new_zeros(self.vocabulary, grad.shape[1]).index_add_(0, tokens, grad)


def in_any_order(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    order = torch.randperm(tokens.numel(), device=tokens.device)
    return model(tokens[order], grad[order])


def by_tables(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    parts = zip(tokens.chunk(4), grad.chunk(4), strict=True)
    return torch.stack([model(token, rows) for token, rows in parts]).sum(0)


def sorted_first(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    order = torch.argsort(tokens, stable=True)
    return model(tokens[order], grad[order])


def by_one_hot(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(tokens, model.vocabulary).T.to(grad.dtype) @ grad


def last_one_wins(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return grad.new_zeros(model.vocabulary, grad.shape[1]).index_copy_(0, tokens, grad)


def without_last_tokens(model: Model, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return model(tokens[:-16], grad[:-16])


HONEST = {
    "any order": in_any_order,
    "a table for each quarter": by_tables,
    "sorted by token": sorted_first,
    "product with one-hot rows": by_one_hot,
}
CHEATS = {
    "stores instead of additions": last_one_wins,
    "last tokens left out": without_last_tokens,
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(VOCABULARY, (TOKENS,)), torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [VOCABULARY]
