"""Writes a definition and its workloads as the text of a problem file, so that all else works as for any problem.

The text begins with the reference's source, whose lines keep their numbers. Then follow the axes and the sources of the
inputs as constants, with those of the largest workload, then `SHAPES` with the smallest one, `WORKLOADS`, `RANGES`,
`Model` and `get_inputs`. Constant axes keep their values everywhere, because solutions may rely on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from inlinebench.catalog.traces.definition import INTEGERS, SMALL_FLOATS, Definition, Tensor
from inlinebench.catalog.traces.workload_file import Origin, TraceWorkload, Value
from inlinebench.catalog.workloads import NOT_CONSTANTS

_MODEL = '''

def _outputs(found):
    """Returns the outputs in the definition's order: a tuple, or the only one."""
    names = {names!r}
    if isinstance(found, dict):
        found = [found[name] for name in names]
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(found) != len(names):
        raise ValueError(f"run returns {{len(found)}} outputs; the definition has {{', '.join(names)}}")
    return found if len(names) > 1 else found[0]


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return _outputs(run({arguments}))
'''


def write(definition: Definition, workloads: Sequence[TraceWorkload]) -> str:
    """Returns the problem of a definition with at least one workload, as Python source."""
    kinds = {tensor.name: {each.sources[tensor.name].origin for each in workloads} for tensor in definition.inputs}
    given = [name for name, origins in kinds.items() if origins & {Origin.SCALAR, Origin.RECORDED}]
    constants = [_constants(each, given) for each in workloads]
    sizes = [math.prod(each.axes.values()) for each in workloads]
    largest, smallest = constants[sizes.index(max(sizes))], constants[sizes.index(min(sizes))]
    names = [tensor.name for tensor in definition.inputs]
    lines = [
        definition.reference, "", "import torch", "",
        *([f"def _draw(*arguments, draw={definition.drawing}):\n    return draw(*arguments)\n"] if definition.drawing
          else []),  # here, because the function may be called get_inputs
        *(f"{name} = {value!r}" for name, value in {**definition.sizes, **largest}.items()),
        *(f"{name} = int({expression})" for name, expression in definition.expressions.items()), "",
        f"SHAPES = {dict(small=smallest)!r}", f"RANGES = {_ranges(definition, workloads)!r}",
        f"TAGS = {[*filter(None, [definition.operation]), *definition.tags]!r}",
        "WORKLOADS = [", *(f"    {dict(name=each.name, **values)!r}," for each, values in
                           zip(workloads, constants, strict=True)), "]",
    ]
    model = _MODEL.format(names=[tensor.name for tensor in definition.outputs], arguments=", ".join(names))
    return "\n".join([*lines, model, *_inputs(definition, kinds)]) + "\n"


def _ranges(definition: Definition, workloads: Sequence[TraceWorkload]) -> dict[str, tuple[int, int]]:
    """Returns the ranges of the variable axes. Recorded inputs have the sizes of their workload, so there are none."""
    if any(source.origin is Origin.RECORDED for each in workloads for source in each.sources.values()):
        return {}
    most = {name: max(each.axes[name] for each in workloads) for name in definition.variables}
    return {name: (1, value) for name, value in most.items() if value > 1}


def _constants(workload: TraceWorkload, given: Sequence[str]) -> dict[str, Value]:
    return {**workload.axes, **{_constant(name): workload.sources[name].value for name in given}}


def _constant(name: str) -> str:
    """Returns the name of the constant for the source of an input, which is no key of `WORKLOADS`."""
    return f"{name}_" if name in NOT_CONSTANTS else name


def _inputs(definition: Definition, kinds: Mapping[str, set[Origin]]) -> Iterator[str]:
    """Yields the lines of `get_inputs`, which calls `_checked` with the inputs, and of `_checked`."""
    names = ", ".join(tensor.name for tensor in definition.inputs)
    yield "\ndef get_inputs():"
    if any(Origin.RECORDED in origins for origins in kinds.values()):
        yield "    from inlinebench.problem.recorded import recorded"
    if any(Origin.CUSTOM in origins for origins in kinds.values()):
        scalars = [each.name for each in definition.inputs if each.shape is None and Origin.SCALAR in kinds[each.name]]
        axes = [*definition.sizes, *definition.variables, *definition.expressions, *scalars]
        known = ", ".join(f"{name!r}: {_constant(name)}" for name in axes)
        yield f"    made = _draw({{{known}}}, torch.empty(0).device)"
    yield "    return _checked("
    for tensor in definition.inputs:
        yield f"        {_input(definition, tensor, kinds[tensor.name])},"
    yield "    )\n\n"
    yield f"def _checked({names}):"
    for constraint in definition.constraints:
        yield f"    if not ({constraint}):"
        yield f"        raise ValueError({f'the constraint {constraint} does not hold'!r})"
    yield f"    return [{names}]"


def _input(definition: Definition, tensor: Tensor, origins: set[Origin]) -> str:
    """Returns the expression of an input. If workloads differ in its source, the constant of its name tells them apart.
    """
    made = f"made[{tensor.name!r}]" if Origin.CUSTOM in origins else _random(definition, tensor)
    drawn = bool(origins & {Origin.RANDOM, Origin.CUSTOM})
    constant = _constant(tensor.name)
    given = f"recorded(__file__, {constant}, {_shape(tensor)}, torch.{tensor.dtype})"
    if Origin.RECORDED not in origins:
        given = constant
    if not drawn:
        return given
    return made if len(origins) == 1 else f"{made} if {constant} is None else {given}"


def _random(definition: Definition, tensor: Tensor) -> str:
    """Returns the expression that draws an input as the format does: normal values, whole numbers up to a bound."""
    shape = _shape(tensor)
    if tensor.dtype == "bool":
        text = f"torch.randint(0, 2, {shape}).bool()"
    elif tensor.dtype in INTEGERS:
        bound = INTEGERS[tensor.dtype]
        text = f"torch.randint({-bound}, {bound}, {shape}, dtype=torch.{tensor.dtype})"
    elif tensor.dtype in SMALL_FLOATS:
        text = f"torch.randn({shape}).clamp(-2, 2).to(torch.{tensor.dtype})"
    else:
        text = f"torch.randn({shape}, dtype=torch.{tensor.dtype})"
        if definition.operation == "sampling" and tensor.name == "probs":
            text += ".softmax(-1)"
    return text if tensor.shape is not None else f"{text}.item()"


def _shape(tensor: Tensor) -> str:
    return f"({''.join(f'{each}, ' for each in tensor.shape or ())})"
