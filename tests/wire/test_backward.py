from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from inlinebench.wire.arena import TensorMeta
from inlinebench.wire.backward import ForwardBackward, GradientForm, NotDifferentiable, compiled, marked, record
from inlinebench.wire.tree import flatten


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor, labels: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.seen += 1
        return x * self.weight, labels + 1


def form_of(value: Any, *outputs: int) -> GradientForm:
    skeleton, leaves = flatten(value)
    return GradientForm(skeleton, outputs, tuple(TensorMeta.of(leaves[each]) for each in outputs), (0, 2), ("weight",))


FORM = form_of((torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64)), 0)
ARGUMENTS = (torch.arange(8.0).view(2, 4), torch.tensor([1, 2]), torch.ones(3))
INCOMING = torch.arange(8.0).view(2, 4) + 1


def test_outputs_and_gradients_are_returned_without_a_graph() -> None:
    (out, labels), gradients = ForwardBackward(Scaled(), FORM)(*ARGUMENTS, [INCOMING])
    assert torch.equal(out, 3 * ARGUMENTS[0]) and torch.equal(labels, torch.tensor([2, 3]))
    assert torch.equal(gradients[0], 3 * INCOMING)
    assert torch.equal(gradients[1], torch.zeros(3))  # of an input that the output does not depend on
    assert torch.equal(gradients[2], (INCOMING * ARGUMENTS[0]).sum(0))
    assert not any(each.requires_grad for each in (out, *gradients))
    assert not any(each.requires_grad for each in ARGUMENTS)


def test_gradients_of_the_outputs_are_moved_to_the_outputs_device() -> None:
    model = ForwardBackward(Scaled().to("meta"), FORM)
    _, gradients = model(*(each.to("meta") for each in ARGUMENTS), [INCOMING])
    assert INCOMING.device.type == "cpu"
    assert [(each.device.type, each.shape) for each in gradients] == [("meta", (2, 4)), ("meta", (3,)), ("meta", (4,))]


def test_gradients_have_names() -> None:
    assert FORM.names == ("gradient of input 0", "gradient of input 2", "gradient of weight")


def test_parameters_and_buffers_keep_their_names_also_in_a_copy() -> None:
    model = ForwardBackward(Scaled(), FORM)
    other = copy.deepcopy(model).double()
    assert [name for name, _ in other.named_parameters()] == ["weight"]
    assert [name for name, _ in other.named_buffers()] == ["seen"]
    assert len(list(model.parameters())) == 1 and next(other.parameters()).dtype is torch.float64
    other(ARGUMENTS[0].double(), ARGUMENTS[1], ARGUMENTS[2].double(), [INCOMING.double()])
    assert (other.get_buffer("model.seen"), model.get_buffer("model.seen")) == (1, 0)


def test_a_gradient_has_the_layout_of_its_input() -> None:
    class Transposed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.T.contiguous()

    form = GradientForm(flatten(torch.zeros(()))[0], (0,), (TensorMeta.of(torch.zeros(5, 3)),), (0,), ())
    incoming = torch.randn(5, 3)
    _, (gradient,) = ForwardBackward(Transposed(), form)(torch.randn(3, 5), [incoming])
    assert gradient.is_contiguous() and torch.equal(gradient, incoming.T)


def test_gradients_are_drawn_in_the_form_of_the_outputs() -> None:
    form = form_of(torch.zeros(3, 5, dtype=torch.bfloat16).T, 0)
    drawn, = form.draw()
    assert (drawn.shape, drawn.stride(), drawn.dtype) == ((5, 3), (1, 5), torch.bfloat16)
    assert drawn.unique().numel() > 5


def test_something_may_happen_between_forward_and_backward() -> None:
    incoming = torch.zeros(2, 4)
    model = ForwardBackward(Scaled(), FORM, between=lambda: incoming.copy_(INCOMING))  # type: ignore[arg-type]
    assert torch.equal(model(*ARGUMENTS, [incoming])[1][0], 3 * INCOMING)


def test_the_end_of_forward_is_marked_in_models_with_a_backward() -> None:
    marks: list[bool] = []
    model = marked(ForwardBackward(Scaled(), FORM), lambda: marks.append(True))
    model(*ARGUMENTS, [INCOMING])
    assert marks == [True]
    plain = Scaled()
    assert marked(plain, lambda: marks.append(False)) is plain


def test_a_parameter_that_the_reference_does_not_use_is_not_demanded() -> None:
    form = replace(FORM, parameters=("weight", "spare"),
                   unused=(("gradient of spare", TensorMeta("float32", (2, 3), (1, 2))),))
    for names in ({"weight": "weight"}, {"weight": "weight", "spare": "spare"}):
        model = Scaled()
        model.spare = nn.Parameter(torch.ones(3, 2).T, requires_grad=False)
        _, gradients = ForwardBackward(model, form, names)(*ARGUMENTS, [INCOMING])
        assert torch.equal(gradients[2], (INCOMING * ARGUMENTS[0]).sum(0))
        assert torch.equal(gradients[3], torch.zeros(2, 3)) and gradients[3].stride() == (1, 2)
    with pytest.raises(NotDifferentiable, match="no parameter matches the reference's weight"):
        ForwardBackward(Scaled(), form, {})


def test_gradients_that_are_none_are_named_unless_the_reference_has_none_either() -> None:
    model = ForwardBackward(Scaled(), FORM)
    model(*ARGUMENTS, [INCOMING])
    assert model.without == ("gradient of input 2",)
    same = ForwardBackward(Scaled(), replace(FORM, unused=(("gradient of input 2", TensorMeta.of(ARGUMENTS[2])),)))
    same(*ARGUMENTS, [INCOMING])
    assert same.without == ()


class Returns(nn.Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.weight, self.value = nn.Parameter(torch.ones(4)), value

    def forward(self, x: torch.Tensor, labels: torch.Tensor, unused: torch.Tensor) -> Any:
        return self.value(x * self.weight), labels


@pytest.mark.parametrize(("value", "message"), [
    (lambda x: x.detach(), "output 0 has no grad_fn, so it has no backward"),
    (lambda x: x[:1], r"output 0 has shape \[1, 4\]; the reference's has \[2, 4\]"),
    (lambda x: x.double(), "output 0 is float64; the reference's is float32"),
    (lambda x: 1.0, "output 0 is float; the reference returns a tensor"),
])
def test_an_output_without_the_reference_s_form_has_no_backward(value: Any, message: str) -> None:
    with pytest.raises(NotDifferentiable, match=message):
        ForwardBackward(Returns(value), FORM)(*ARGUMENTS, [INCOMING])


def test_an_output_without_the_reference_s_structure_has_no_backward() -> None:
    with pytest.raises(NotDifferentiable, match="the output is tuple of 2; the reference returns one value"):
        ForwardBackward(Scaled(), form_of(torch.zeros(2, 4), 0))(*ARGUMENTS, [INCOMING])


def test_each_parameter_needs_a_match_that_requires_a_gradient() -> None:
    with pytest.raises(NotDifferentiable, match="no parameter matches the reference's weight"):
        ForwardBackward(Scaled(), FORM, {})
    frozen = Scaled()
    frozen.weight.requires_grad_(False)
    with pytest.raises(NotDifferentiable, match="the parameter weight does not require a gradient"):
        ForwardBackward(frozen, FORM)(*ARGUMENTS, [INCOMING])


@pytest.mark.slow
def test_a_compiled_model_computes_the_same_outputs_and_gradients() -> None:
    plain, fast = ForwardBackward(Scaled(), FORM), compiled(ForwardBackward(Scaled(), FORM), None)
    with torch.no_grad():
        (out, _), gradients = fast(*ARGUMENTS, [INCOMING])
        (expected, _), wanted = plain(*ARGUMENTS, [INCOMING])
    torch.testing.assert_close([out, *gradients], [expected, *wanted])
    assert isinstance(fast, ForwardBackward) and not isinstance(fast.model, Scaled)
    assert not isinstance(compiled(Scaled(), None), ForwardBackward)


def test_a_model_is_compiled_for_its_shapes_also_if_its_code_was_compiled_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: list[Any] = []

    def backend(module: torch.fx.GraphModule, arguments: list[Any]) -> Any:
        met.extend(each for each in arguments if not isinstance(each, torch.Tensor))
        met.extend(each.shape for each in arguments if isinstance(each, torch.Tensor))
        return module.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", torch._dynamo.config.recompile_limit)
    sizes = range(3, 20)  # a set has more than the eight workloads that Dynamo would compile for
    for size in sizes:
        compiled(nn.Softmax(-1), None)(torch.zeros(2, size))
    assert met == [(2, size) for size in sizes]


def test_integers_get_no_gradient() -> None:
    assert record(Scaled(), ARGUMENTS).inputs == (0, 2)
