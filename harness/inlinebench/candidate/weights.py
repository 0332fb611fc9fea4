"""Matches a solution's parameters and buffers with the reference's, and copies the reference's values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import torch
from torch.nn.parameter import is_lazy

Tensors = Mapping[str, torch.Tensor]

KEPT = "the solution's own values"
"""How weights are described that the solution keeps."""


@dataclass(frozen=True)
class Match:
    """How a solution's parameters and buffers match the reference's."""

    parameters: dict[str, str]
    """The reference's name of each matched parameter, by the solution's name."""
    buffers: dict[str, str]
    """The reference's name of each matched buffer, by the solution's name."""
    how: str
    """How they were matched, and how many parameters were not, in words."""


def match(own: torch.nn.Module, parameters: Tensors, buffers: Tensors) -> Match:
    """Matches the tensors of a solution with the reference's.

    The criteria, in this order: the full name; a unique last part of the name; a unique equal value; a unique shape;
    the order, if the rest has the same shapes and dtypes in the same order. Parameters and buffers are matched
    separately. Shape and dtype must be equal, and only floating-point tensors match by anything but the full name.
    """
    own_parameters = {name: tensor for name, tensor in own.named_parameters() if not is_lazy(tensor)}
    own_buffers = {name: tensor for name, tensor in own.named_buffers() if not is_lazy(tensor)}
    ways: list[str] = []
    found_parameters = _pair(own_parameters, parameters, ways)
    found_buffers = _pair(own_buffers, buffers, ways)
    unmatched = len(own_parameters) - len(found_parameters)
    how = ", ".join(dict.fromkeys(ways)) or ("none to match" if not own_parameters else KEPT)
    if unmatched and ways:
        how += f"; {unmatched} kept {KEPT}"
    return Match(found_parameters, found_buffers, how)


def materialize(own: torch.nn.Module, parameters: Tensors, buffers: Tensors) -> None:
    """Gives lazy parameters and buffers the shapes of the reference's of the same names, as loading a state dict does.
    """
    for name, tensor in [*own.named_parameters(), *own.named_buffers()]:
        reference = parameters.get(name, buffers.get(name))
        if is_lazy(tensor) and reference is not None:
            tensor.materialize(reference.shape)


def transfer(own: torch.nn.Module, found: Match, parameters: Tensors, buffers: Tensors) -> None:
    """Copies the reference's values into the matched tensors, in place."""
    own_parameters, own_buffers = dict(own.named_parameters()), dict(own.named_buffers())
    with torch.no_grad():
        for name, theirs in found.parameters.items():
            own_parameters[name].copy_(parameters[theirs])
        for name, theirs in found.buffers.items():
            own_buffers[name].copy_(buffers[theirs])


def _pair(own: Tensors, reference: Tensors, ways: list[str]) -> dict[str, str]:
    mine, theirs = dict(own), dict(reference)
    pairs: dict[str, str] = {}

    def take(found: dict[str, str], way: str) -> None:
        if found:
            ways.append(way)
        pairs.update(found)
        for name, other in found.items():
            del mine[name], theirs[other]

    take({name: name for name in mine if name in theirs and _alike(mine[name], theirs[name])}, "by name")
    mine = {name: tensor for name, tensor in mine.items() if tensor.is_floating_point()}
    theirs = {name: tensor for name, tensor in theirs.items() if tensor.is_floating_point()}
    take(_by_key(mine, theirs, lambda name, _: name.rpartition(".")[2]), "by last name")
    take(_by_value(mine, theirs), "by value")
    take(_by_key(mine, theirs, lambda _, tensor: _form(tensor)), "by shape")
    if [_form(tensor) for tensor in mine.values()] == [_form(tensor) for tensor in theirs.values()]:
        take(dict(zip(list(mine), list(theirs), strict=True)), "by order")
    return pairs


def _by_key(mine: Tensors, theirs: Tensors, key: Callable[[str, torch.Tensor], Hashable]) -> dict[str, str]:
    found = {}
    for name, tensor in mine.items():
        wanted = key(name, tensor)
        rivals = [other for other, value in mine.items() if key(other, value) == wanted]
        partners = [other for other, value in theirs.items() if key(other, value) == wanted]
        if len(rivals) == len(partners) == 1 and _alike(tensor, theirs[partners[0]]):
            found[name] = partners[0]
    return found


def _by_value(mine: Tensors, theirs: Tensors) -> dict[str, str]:
    found = {}
    for name, tensor in mine.items():
        partners = [other for other, value in theirs.items() if _equal(tensor, value)]
        rivals = [other for other, value in mine.items() if _equal(tensor, value)]
        if len(partners) == len(rivals) == 1:
            found[name] = partners[0]
    return found


def _form(tensor: torch.Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return _form(one) == _form(other)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return _alike(one, other) and torch.equal(one.detach().cpu(), other.detach().cpu())
