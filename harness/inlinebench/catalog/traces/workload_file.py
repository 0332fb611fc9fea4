"""Reads the workloads of a definition: for each, the values of the axes and where the inputs come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from inlinebench.catalog.traces.definition import Definition, Tensor
from inlinebench.catalog.traces.fields import DefinitionError, JsonObject, is_scalar, json_object, text_of

Value = int | float | bool | tuple[str, str] | None
"""What a constant of the problem's text says about an input: a scalar, a file and the name of a tensor in it, or None
for one that is drawn."""
SHORT = 8
"""The characters of a uuid that name a workload, unless two workloads share them."""


class Origin(Enum):
    """Where an input comes from."""

    RANDOM = "random"
    """It is drawn by its dtype."""
    SCALAR = "scalar"
    """The workload has its value."""
    RECORDED = "safetensors"
    """It is in a file."""
    CUSTOM = "custom"
    """A function of the reference draws it."""


@dataclass(frozen=True)
class Source:
    """Where one input of a workload comes from."""

    origin: Origin
    value: Value = None
    """The scalar, or the file and the name of the tensor."""


@dataclass(frozen=True)
class TraceWorkload:
    """Values for all variable axes of a definition, and the sources of all of its inputs."""

    name: str
    """The uuid, or its first characters if these are enough to tell it from the others."""
    axes: Mapping[str, int]
    sources: Mapping[str, Source]


def read_workload_file(path: Path, definition: Definition) -> tuple[TraceWorkload, ...]:
    """Returns the workloads of a file, in order. There is one on each line, by itself or as `workload` of a trace.

    Raises DefinitionError if there is none, or if one contradicts the definition; OSError if the file cannot be read.
    """
    found: list[TraceWorkload] = []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if line.strip():
            given = json_object(line, path, number)
            if given.get("definition", str, definition.name) != definition.name:
                raise given.error(f"it is a workload of {given.values['definition']!r}; {definition.path} is "
                                  f"{definition.name!r}")
            given = JsonObject(given.where, given.get("workload", dict)) if "workload" in given.values else given
            found.append(_workload(given, definition))
    if not found:
        raise DefinitionError(f"{path}: there are no workloads in it")
    return _shortly_named(found, path)


def _workload(given: JsonObject, definition: Definition) -> TraceWorkload:
    axes = given.get("axes", dict)
    for name, value in axes.items():
        if name not in definition.variables and value != definition.sizes.get(name):
            raise given.error(f"it has a value for {name!r}, which is no variable axis; these are "
                              f"{', '.join(definition.variables) or 'none'}")
        if type(value) is not int or value < 0:
            raise given.error(f"the axis {name!r} is {value!r}; it must be a whole number that is not negative")
    if missing := [name for name in definition.variables if name not in axes]:
        raise given.error(f"it has no value for the axis {missing[0]!r}")
    return TraceWorkload(given.get("uuid", str), {name: axes[name] for name in definition.variables},
                         _sources(given, definition))


def _sources(given: JsonObject, definition: Definition) -> dict[str, Source]:
    """Returns the sources of all inputs. Raises DefinitionError also if none is drawn: with the same inputs in every
    call, a solution could keep its outputs."""
    named = given.entries("inputs")
    if unknown := named.keys() - {each.name for each in definition.inputs}:
        raise given.error(f"it has a source for {min(unknown)!r}, which is no input of {definition.path}")
    found = {each.name: _source(each, named[each.name], definition) if each.name in named else Source(Origin.RANDOM)
             for each in definition.inputs}
    if not {Origin.RANDOM, Origin.CUSTOM} & {each.origin for each in found.values()}:
        raise given.error("it draws no input; with the same inputs in every call, a solution could keep its outputs")
    return found


def _source(tensor: Tensor, given: JsonObject, definition: Definition) -> Source:
    kind = given.get("type", str)
    known = [each.value for each in Origin]
    if kind not in known:
        raise given.error(f"the type {kind!r} is not supported; the types are {', '.join(known)}")
    origin = Origin(kind)
    if origin is Origin.SCALAR:
        value = given.values.get("value")
        if not is_scalar(value) or tensor.shape is not None:
            raise given.error(f"the scalar {value!r} must be a finite number or a boolean" if tensor.shape is None
                              else "it is a scalar, and the definition has a shape for it")
        assert isinstance(value, int | float)
        return Source(origin, value)
    if origin is Origin.RECORDED:
        if tensor.shape is None:
            raise given.error("it is a tensor of a file, and the definition has a scalar")
        return Source(origin, (given.get("path", str), given.get("tensor_key", str)))
    if origin is Origin.CUSTOM and not definition.drawing:
        raise given.error(f"the type custom needs 'custom_inputs_entrypoint', which {definition.path} lacks")
    return Source(origin)


def _shortly_named(workloads: list[TraceWorkload], path: Path) -> tuple[TraceWorkload, ...]:
    if doubles := [name for name, count in Counter(each.name for each in workloads).items() if count > 1]:
        raise DefinitionError(f"{path}: two workloads have the uuid {doubles[0]!r}")
    short = [each.name[:SHORT] for each in workloads]
    unique = len(set(short)) == len(short)
    return tuple(TraceWorkload(each.name[:SHORT] if unique else each.name, each.axes, each.sources)
                 for each in workloads)
