"""Keeps inputs secret although `get_inputs` seeds random generators itself.

Seeds in a problem file are public, so a solution could compute its outputs from them beforehand.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from numbers import Integral
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from inlinebench.problem.secret_random import SecretRandom

SEED_BITS = 32
"""NumPy's older generator takes no larger seeds."""


@contextmanager
def fresh_seeds(seed: int) -> Iterator[None]:
    """Replaces every seed that code sets meanwhile by one that follows from it and from the secret `seed`.

    Equal seeds are replaced by equal ones, so what is drawn twice from one seed stays equal.
    """
    functions: list[tuple[Any, str, Callable[..., Any]]] = [(random, "seed", random.seed)]
    if (numpy := sys.modules.get("numpy")) is not None:
        functions += [(numpy.random, name, getattr(numpy.random, name)) for name in ("seed", "default_rng")]
    try:
        for module, name, function in functions:
            setattr(module, name, _with_fresh_seed(function, seed))
        with _FreshGenerators(seed):
            yield
    finally:
        for module, name, function in functions:
            setattr(module, name, function)


def _with_fresh_seed(function: Callable[..., Any], seed: int) -> Callable[..., Any]:
    @wraps(function)
    def call(own: object = None, *args: Any, **named: Any) -> Any:
        return function(_mix(seed, own) if isinstance(own, Integral) else own, *args, **named)

    return call


class _FreshGenerators(TorchFunctionMode):
    """Seeds each of PyTorch's generators that has another seed than `seed` again before it is used.

    In the end generators get their states back, so that one that outlives this gives the same numbers next time.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed, self._known = seed, {seed}
        self._before: list[tuple[torch.Generator, torch.Tensor]] = []

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for generator, state in reversed(self._before):
            generator.set_state(state)

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Generator)]
        for generator in (torch.default_generator, *torch.cuda.default_generators, *given):
            own = generator.initial_seed()
            if own not in self._known:
                self._known.add(_mix(self._seed, own))
                self._before.append((generator, generator.get_state()))
                generator.manual_seed(_mix(self._seed, own))
        return func(*args, **(kwargs or {}))


def _mix(seed: int, own: object) -> int:
    return SecretRandom(seed, f"seeded with {own}").getrandbits(SEED_BITS)
