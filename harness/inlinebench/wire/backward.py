"""A call that is a forward and a backward, for the reference in the judge and for a solution in its own process alike.

`ForwardBackward` makes a model of a model: its arguments are those of `forward` and the gradients of the outputs, and
it returns the outputs and the gradients of the inputs and the parameters. To everything else, gradients that come in
are inputs, and those that go out are outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from inlinebench.wire.arena import TensorMeta, is_dense, used_strides
from inlinebench.wire.tree import flatten, structure_differs, unflatten

NO_GRADIENT = "no gradient: "
"""How a note of a candidate begins that says which gradients of a call were None."""
MOST_COMPILED = 256
"""For how many shapes `torch.compile` compiles the code of a model: more than a set has workloads."""


class NotDifferentiable(Exception):
    """The outputs of a call have no gradients where the reference's have some. The message says what to do."""


def gradient_of(parameter: str) -> str:
    """Returns the name of the gradient of a parameter."""
    return f"gradient of {parameter}"


@dataclass(frozen=True)
class GradientForm:
    """What a call with a backward differentiates."""

    skeleton: Any
    """The nesting of the output of `forward`, as `inlinebench.wire.tree.flatten` returns it."""
    outputs: tuple[int, ...]
    """The positions of the leaves of that output that are differentiated."""
    incoming: tuple[TensorMeta, ...]
    """Dtype, shape and strides of the gradient of each of them, which is given."""
    inputs: tuple[int, ...]
    """The numbers of the tensor inputs whose gradients are returned."""
    parameters: tuple[str, ...]
    """The reference's names of the parameters whose gradients are returned."""
    unused: tuple[tuple[str, TensorMeta], ...] = ()
    """The names of gradients of which the reference has none, because no output depends on their sources, with dtype,
    shape and strides of these. A solution needs no such parameters."""
    own: bool = False
    """Whether the reference defines gradients itself, so that they could be wrong."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the gradients that are returned, in order."""
        return (*(f"gradient of input {number}" for number in self.inputs),
                *map(gradient_of, self.parameters))

    def draw(self) -> list[torch.Tensor]:
        """Draws gradients of the outputs, on the default device."""
        return [torch.empty_strided(meta.shape, meta.strides, dtype=meta.torch_dtype).normal_()
                for meta in self.incoming]


@dataclass(frozen=True)
class Recorded:
    """A forward whose operations autograd has recorded."""

    value: Any
    """What `forward` returned."""
    sources: list[torch.Tensor]
    """The inputs that gradients are computed of."""
    inputs: tuple[int, ...]
    """Their numbers among the tensor inputs."""


def record(model: Callable[..., Any], arguments: Sequence[Any]) -> Recorded:
    """Runs `forward` on inputs that require gradients: all with floating-point or complex numbers."""
    skeleton, leaves = flatten(list(arguments))
    tensors = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for index in tensors:
        if can_have_gradient(leaves[index]):
            leaves[index] = leaves[index].detach().requires_grad_()
    found = [(number, leaves[index]) for number, index in enumerate(tensors) if leaves[index].requires_grad]
    with torch.enable_grad():
        value = model(*unflatten(skeleton, leaves))
    return Recorded(value, [tensor for _, tensor in found], tuple(number for number, _ in found))


def can_have_gradient(tensor: torch.Tensor) -> bool:
    """Whether autograd computes gradients of tensors of this dtype."""
    return tensor.is_floating_point() or tensor.is_complex()


class ForwardBackward(torch.nn.Module):
    """Runs `forward` of a model and then its backward.

    Its last argument is the list of the gradients of the outputs. It returns the output and the list of the gradients
    of the inputs and the parameters: zeros where no output depends on one. A gradient has the layout of what it is a
    gradient of, as autograd accumulates it. `without` has the names of the gradients that were None in the last call,
    although the reference's are not.

    Args:
        model: the model.
        form: what is differentiated.
        own_names: the model's names of the parameters, by the reference's. None: they are equal.
        between: is called between forward and backward.

    Raises NotDifferentiable if the model lacks one of the parameters that outputs depend on.
    """

    def __init__(
        self, model: torch.nn.Module, form: GradientForm, own_names: Mapping[str, str] | None = None,
        between: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        names = {name: name for name in form.parameters} if own_names is None else own_names
        self._unused = dict(form.unused)
        if lacking := [name for name in form.parameters if name not in names and gradient_of(name) not in self._unused]:
            raise NotDifferentiable(f"no parameter matches the reference's {lacking[0]}, whose gradient is compared; "
                                    "define a torch.nn.Parameter of its name and shape, and compute from it in forward")
        self.model = model
        self.form, self.between = form, between
        self._names = names
        self.without: tuple[str, ...] = ()

    def forward(self, *arguments: Any) -> tuple[Any, list[torch.Tensor]]:
        """Returns the output and the gradients. Raises NotDifferentiable, and what the model raises."""
        *given, incoming = arguments
        recorded = record(self.model, given)
        skeleton, leaves = flatten(recorded.value)
        if differs := structure_differs(recorded.value, skeleton, self.form.skeleton):
            raise NotDifferentiable(differs)
        outputs = [self._differentiable(leaves, position, gradient)
                   for position, gradient in zip(self.form.outputs, incoming, strict=True)]
        sources = [*recorded.sources, *(self._parameter(name, outputs[0].device) for name in self.form.parameters)]
        if self.between is not None:
            self.between()
        incoming = [gradient.to(output.device) for output, gradient in zip(outputs, incoming, strict=True)]
        gradients = torch.autograd.grad(outputs, sources, incoming, allow_unused=True)
        self.without = tuple(name for name, gradient in zip(self.form.names, gradients, strict=True)
                             if gradient is None and name not in self._unused)
        plain = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return unflatten(skeleton, plain), list(map(_laid_out_as, gradients, sources))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yields the model's own parameters, under its own names."""
        return self.model.named_parameters(prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the model's own buffers, under its own names."""
        return self.model.named_buffers(prefix, recurse, remove_duplicate)

    def _differentiable(self, leaves: Sequence[Any], position: int, gradient: torch.Tensor) -> torch.Tensor:
        """Returns an output that a gradient can be given for. Raises NotDifferentiable."""
        output, what = leaves[position], f"output {position}" if len(leaves) > 1 else "the output"
        if not isinstance(output, torch.Tensor):
            raise NotDifferentiable(f"{what} is {type(output).__name__}; the reference returns a tensor")
        if output.shape != gradient.shape:
            raise NotDifferentiable(f"{what} has shape {list(output.shape)}; the reference's has "
                                    f"{list(gradient.shape)}")
        if output.dtype is not gradient.dtype:
            dtypes = [str(each.dtype).removeprefix("torch.") for each in (output, gradient)]
            raise NotDifferentiable(f"{what} is {dtypes[0]}; the reference's is {dtypes[1]}")
        if not output.requires_grad:
            raise NotDifferentiable(f"{what} has no grad_fn, so it has no backward; call the kernels in a "
                                    "torch.autograd.Function, or register autograd for the operator")
        return output

    def _parameter(self, name: str, device: torch.device) -> torch.Tensor:
        """Returns the model's parameter for this one of the reference's, or what stands for one that is not needed."""
        own = self._names.get(name)
        found = None if own is None else self.model.get_parameter(own)
        if found is not None and found.requires_grad:
            return found
        if gradient_of(name) not in self._unused:
            raise NotDifferentiable(f"the parameter {own} does not require a gradient; the reference's does")
        meta = self._unused[gradient_of(name)]
        return torch.empty_strided(
            meta.shape, meta.strides, dtype=meta.torch_dtype, device=device, requires_grad=True)


def marked(model: torch.nn.Module, mark: Callable[[], None]) -> torch.nn.Module:
    """Returns a model that calls `mark` between forward and backward, if it has both."""
    if isinstance(model, ForwardBackward):
        model.between = mark
    return model


def compiled(model: torch.nn.Module, mode: str | None) -> torch.nn.Module:
    """Returns a model that `torch.compile` compiles, with its backward if it has one.

    It is compiled for the shapes of its inputs. By default, Dynamo compiles code that it has met with other shapes for
    any shape, also in another module of the same file, and the result may be slower. It also compiles the same code for
    eight shapes at most, and then runs it without compiling it.
    """
    torch._dynamo.config.recompile_limit = MOST_COMPILED
    inner = model.model if isinstance(model, ForwardBackward) else model
    fast = cast(torch.nn.Module, torch.compile(inner, mode=mode, dynamic=False))
    if not isinstance(model, ForwardBackward):
        return fast
    model.model = fast
    return model


def _laid_out_as(gradient: torch.Tensor | None, source: torch.Tensor) -> torch.Tensor:
    """Returns a gradient with the strides of what it is a gradient of, if that is dense; zeros for None."""
    if gradient is None:
        return torch.zeros_like(source)
    wanted, given = (used_strides(source.shape, each.stride()) for each in (source, gradient))
    return gradient if given == wanted or not is_dense(source) else torch.empty_like(source).copy_(gradient)
