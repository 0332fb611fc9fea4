"""Finds in the text of a problem what may draw random numbers in `forward`, such as dropout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_DROPOUT = re.compile(r"(Feature)?(Alpha)?Dropout[123]?d?|(feature_)?(alpha_)?dropout[123]?d?")
_FUNCTIONAL = re.compile(r"F|torch|(torch\.)?(nn\.)?functional")
_WITH_DROPOUT = ("Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer")
"""Modules whose parameter `dropout` is not 0 by default."""
_DRAWS = frozenset({
    "bernoulli", "bernoulli_", "multinomial", "rand", "rand_like", "randn", "randn_like", "randint", "randint_like",
    "randperm", "normal", "normal_", "uniform_", "exponential_", "random_", "gumbel_softmax", "rrelu", "poisson",
})
_BEFORE_FORWARD = re.compile(r"__init__|.*(init|reset).*")
"""Names of methods that prepare a model."""


def random_draws(tree: ast.Module) -> tuple[str, ...]:
    """Returns the names of what may draw random numbers in `forward`, in order of appearance.

    Only code of classes counts. Dropout with a rate of 0 does not draw.
    """
    drawing = list(_calls(tree))
    zeros = _zeros(tree) if drawing else frozenset()
    return tuple(dict.fromkeys(name for name, call in drawing if not _is_off(name, call, zeros)))


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yields the calls in classes that draw, with the names of what they call."""
    methods = [method for kind in tree.body if isinstance(kind, ast.ClassDef) for method in kind.body]
    for method in methods:
        prepares = isinstance(method, ast.FunctionDef) and _BEFORE_FORWARD.fullmatch(method.name)
        for call in ast.walk(method):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute | ast.Name):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
            if _DROPOUT.fullmatch(name) or name in _WITH_DROPOUT or (name in _DRAWS and not prepares):
                yield name, call


def _is_off(name: str, call: ast.Call, zeros: frozenset[str]) -> bool:
    """Whether the rate of dropout is 0, or the call is one of a module, which counts where it is constructed."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _WITH_DROPOUT:
        return "dropout" in named and _is_zero(named["dropout"], zeros)
    if not _DROPOUT.fullmatch(name):
        return False
    is_function = name[0].islower()
    if is_function and isinstance(call.func, ast.Attribute) and not _FUNCTIONAL.fullmatch(ast.unparse(call.func.value)):
        return True
    rates = call.args[1:] if is_function else call.args
    rate = named.get("p", rates[0] if rates else None)
    return rate is not None and _is_zero(rate, zeros)


def _zeros(tree: ast.Module) -> frozenset[str]:
    """Returns the names of variables and parameters whose values in the text are all 0."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.arguments):
            with_defaults = [*node.posonlyargs, *node.args][-len(node.defaults):] if node.defaults else []
            for argument, default in zip(with_defaults, node.defaults, strict=True):
                values.setdefault(argument.arg, []).append(default)
    return frozenset(name for name, given in values.items() if all(_is_zero(value, frozenset()) for value in given))


def _is_zero(value: ast.expr, zeros: frozenset[str]) -> bool:
    return (isinstance(value, ast.Constant) and value.value == 0) or (isinstance(value, ast.Name) and value.id in zeros)
