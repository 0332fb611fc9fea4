"""Finds out which inputs of a problem come straight from a random draw, so that other values make sense for them.

`get_inputs` runs under a dispatch mode of PyTorch, which sees every operator. A tensor that is an affine map of a draw
such as `torch.randn` may have other signs and another scale. A tensor that comes from `sigmoid`, `abs`, a norm or a
comparison has a range with a meaning: a reference may explode outside of it. Whatever cannot be traced, such as values
from NumPy or from a file, is treated in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import count
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DRAWS = frozenset({"rand", "randn", "rand_like", "randn_like", "uniform", "normal"})
"""Operators that draw continuous values which may have any sign."""
EMPTY = ("zeros", "zeros_like", "new_zeros", "zero", "empty", "empty_like", "empty_strided", "new_empty",
         "new_empty_strided", "empty_permuted")
"""Operators whose results contain zeros, or nothing yet. Variants keep zeros."""
FULL = ("full", "full_like", "new_full", "scalar_tensor")
"""Operators whose results contain one number."""
MOVES = ("clone", "_to_copy", "detach", "cat", "stack", "repeat", "flip", "roll", "rot90", "tril", "triu",
         "diag_embed", "_unsafe_view", "block_diag")
"""Operators that copy values to other positions, or leave some out."""
CHOICES = ("index_select", "index", "index_put", "gather", "take", "masked_fill", "masked_scatter", "where")
"""Operators that copy the values that a mask or indices choose."""


class Freedom(Enum):
    """What may happen to the values of a tensor."""

    ZERO = "zero"
    """All values are zero, or not yet written."""
    FREE = "free"
    """The values are an affine map of a draw. They may change sign and scale."""
    FIXED = "fixed"
    """The values are constant, have a range with a meaning, or are of unknown origin."""


@dataclass(frozen=True)
class Domain:
    """The kind of a tensor's values, and the draws that they depend on."""

    kind: Freedom
    """What may happen to the values."""
    draws: frozenset[int] = frozenset()
    """The numbers of the draws."""


UNKNOWN = Domain(Freedom.FIXED)
"""The domain of constants and of tensors that were not traced."""


def join(one: Domain, other: Domain) -> Domain:
    """Returns the domain of a tensor that contains values of two tensors side by side."""
    draws = one.draws | other.draws
    kinds = {one.kind, other.kind} - {Freedom.ZERO}
    return Domain(kinds.pop() if len(kinds) == 1 else Freedom.FIXED if kinds else Freedom.ZERO, draws)


def add(one: Domain, other: Domain) -> Domain:
    """Returns the domain of a sum. A free tensor plus a constant stays free."""
    draws = one.draws | other.draws
    kinds = [each.kind for each in (one, other) if each.kind is Freedom.FREE or each.draws]
    if not kinds:
        return Domain(Freedom.ZERO if one.kind is other.kind is Freedom.ZERO else Freedom.FIXED)
    return Domain(Freedom.FREE if all(kind is Freedom.FREE for kind in kinds) else Freedom.FIXED, draws)


def multiply(one: Domain, other: Domain) -> Domain:
    """Returns the domain of a product. It is free if a factor is, and the other one is drawn independently."""
    draws = one.draws | other.draws
    if Freedom.ZERO in (one.kind, other.kind):
        return Domain(Freedom.ZERO, draws)
    free = Freedom.FREE in (one.kind, other.kind) and not one.draws & other.draws
    return Domain(Freedom.FREE if free else Freedom.FIXED, draws)


def divide(one: Domain, other: Domain) -> Domain:
    """Returns the domain of a quotient. Only a free dividend makes it free."""
    return multiply(one, Domain(Freedom.FIXED, other.draws))


@dataclass(frozen=True)
class Operator:
    """One call of an operator of PyTorch."""

    arguments: tuple[Any, ...]
    """The positional arguments."""
    keywords: dict[str, Any]
    """The keyword arguments."""
    tensors: tuple[torch.Tensor, ...]
    """All tensors among the arguments."""
    domains: tuple[Domain, ...]
    """The domains of these tensors before the call."""

    @property
    def number(self) -> Domain:
        """The domain of the last argument that is a number."""
        numbers = [each for each in self.arguments if isinstance(each, int | float) and not isinstance(each, bool)]
        return _of_number(numbers[-1] if numbers else 0)

    @property
    def pair(self) -> tuple[Domain, Domain]:
        """The domains of the first two arguments, tensors or numbers."""
        domains = iter(self.domains)
        one, other, *_ = (next(domains) if isinstance(each, torch.Tensor) else _of_number(each)
                          for each in self.arguments[:2])
        return one, other

    @property
    def chosen(self) -> Domain:
        """The domain of the values, in floating-point tensors, that masks and indices choose."""
        values = [domain for tensor, domain in zip(self.tensors, self.domains, strict=True)
                  if tensor.is_floating_point()]
        choosers = [domain.draws for tensor, domain in zip(self.tensors, self.domains, strict=True)
                    if not tensor.is_floating_point()]
        domain = reduce(join, values or [UNKNOWN])
        bounded = any(draws & domain.draws for draws in choosers)  # as in `x[x > 0] = 0`, which bounds x
        return Domain(Freedom.FIXED if bounded else domain.kind, domain.draws.union(*choosers))

    @property
    def quotient(self) -> Domain:
        """The domain of a quotient, which is not free if it is rounded."""
        found = divide(*self.pair)
        return found if self.keywords.get("rounding_mode") is None else Domain(Freedom.FIXED, found.draws)


RULES: dict[str, Callable[[Operator], Domain]] = {
    **dict.fromkeys(EMPTY, lambda _: Domain(Freedom.ZERO)),
    **dict.fromkeys(FULL, lambda operator: operator.number),
    **dict.fromkeys(MOVES, lambda operator: reduce(join, operator.domains)),
    **dict.fromkeys(CHOICES, lambda operator: operator.chosen),
    "masked_fill": lambda operator: join(operator.chosen, operator.number),
    "constant_pad_nd": lambda operator: join(operator.domains[0], operator.number),
    "copy": lambda operator: operator.domains[1],
    "fill": lambda operator: operator.domains[1] if len(operator.domains) > 1 else operator.number,
    # `torch.tensor(...)`, or a number that becomes a tensor.
    "lift_fresh": lambda operator: UNKNOWN if bool(operator.tensors[0].any()) else Domain(Freedom.ZERO),
    "neg": lambda operator: operator.domains[0],
    **dict.fromkeys(("add", "sub", "rsub"), lambda operator: add(*operator.pair)),
    "mul": lambda operator: multiply(*operator.pair),
    **dict.fromkeys(("div", "true_divide"), lambda operator: operator.quotient),
}
"""How the domain of a result follows from those of the operands, by the operator's name. All other operators give
values that are fixed."""


class TraceDomains(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Traces where the values of tensors come from. Use it as a context manager, then ask `is_free`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._domains: dict[StorageWeakRef, Domain] = {}
        self._numbers = count()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise PyTorch imports TorchDynamo, which takes seconds, only to disable it for this mode.
        return False

    def is_free(self, tensor: torch.Tensor) -> bool:
        """Whether all values of a tensor that are not zero come straight from a draw."""
        return self._of(tensor).kind is Freedom.FREE

    def __torch_dispatch__(
        self, func: torch._ops.OpOverload, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        operands = tuple(each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor))
        domain = self._domain(func, Operator(args, kwargs, operands, tuple(map(self._of, operands))))
        known = set(map(_storage, operands)) & self._domains.keys()
        for target in _written(func, args, kwargs):
            self._write(target, domain)
        for made in tree_leaves(result):
            if isinstance(made, torch.Tensor) and _storage(made) not in known:
                self._set(made, domain)
        return result

    def _of(self, tensor: torch.Tensor) -> Domain:
        return self._domains.get(_storage(tensor), UNKNOWN)

    def _set(self, tensor: torch.Tensor, domain: Domain) -> None:
        # Values lose their origin in an integer or boolean tensor: a code or a mask may follow from it.
        if not tensor.is_floating_point() and domain.kind is Freedom.FREE:
            domain = Domain(Freedom.FIXED, domain.draws)
        self._domains[_storage(tensor)] = domain

    def _write(self, target: torch.Tensor, domain: Domain) -> None:
        """Notes that an operator wrote to a tensor, which may be a part of its storage."""
        whole = target.numel() * target.element_size() >= target.untyped_storage().nbytes()
        self._set(target, domain if whole else join(self._of(target), domain))

    def _domain(self, func: torch._ops.OpOverload, operator: Operator) -> Domain:
        """Returns the domain of the values that an operator has just computed."""
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        draws = frozenset[int]().union(*(each.draws for each in operator.domains))
        if torch.Tag.nondeterministic_seeded in func.tags:
            return Domain(Freedom.FREE if name in DRAWS else Freedom.FIXED, draws | {next(self._numbers)})
        return RULES[name](operator) if name in RULES else Domain(Freedom.FIXED, draws)


def _storage(tensor: torch.Tensor) -> StorageWeakRef:
    """Returns a key for the memory of a tensor. As long as the key exists, no other memory has an equal one."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def _of_number(number: float) -> Domain:
    return Domain(Freedom.ZERO if number == 0 else Freedom.FIXED)


def _written(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterable[torch.Tensor]:
    """Yields the tensors that an operator writes to, by its schema."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name, args[position] if position < len(args) else None)
            yield from (each for each in tree_leaves(value) if isinstance(each, torch.Tensor))
