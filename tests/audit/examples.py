"""Bad problems, each with the finding that must name it, and honest problems without faults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TEMPLATE = '''
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
X = "torch.randn(24, 40)"
SQUARE = "torch.randn(24, 24)"
POSITIVE = "torch.rand(24, 40).abs()"


@dataclass(frozen=True)
class Example:
    """A problem in short."""

    forward: str
    """The statements of `forward`, whose arguments are x, y and z as far as there are inputs."""
    inputs: tuple[str, ...] = (X,)
    """An expression for each input."""
    init: str = "pass"
    """The statements of the constructor."""
    finding: str = ""
    """The name of the fault that must be found."""
    says: str = ""
    """A part of its text."""
    remarks: tuple[str, ...] = ()
    """The names of the remarks of an honest problem."""

    def write(self, path: Path) -> Path:
        """Writes the problem file."""
        path.write_text(TEMPLATE.format(
            init=self.init.replace("\n", "\n        "), forward=self.forward.replace("\n", "\n        "),
            names=", ".join("xyz"[: len(self.inputs)]), inputs=", ".join(self.inputs)), encoding="utf-8")
        return path


CONSTANT, RANDOM, ROUNDING = "constant output", "random numbers", "only rounding"
INPUT, WEIGHT, REDUNDANT, PRECISION = (
    "input without effect", "weight without effect", "redundant operator", "low precision")
PARAMETER = "self.w = nn.Parameter(torch.randn(40, 40))"

PLANTED = {
    "softmax_of_one_value": Example("return torch.softmax(x.sum(1, keepdim=True), 1)", finding=CONSTANT, says="mean"),
    "relu_of_what_is_negative": Example("return torch.relu(-x.abs())", finding=CONSTANT, says="zeros"),
    "clamped_after_a_minimum": Example("return torch.clamp(torch.clamp(x, max=0.0), 0.0, 1.0)", finding=CONSTANT,
                                       says="zeros"),
    "softmax_of_small_values": Example("return torch.softmax(1e-8 * x, 1)", finding=CONSTANT, says="mean"),
    "bias_that_drowns_the_input": Example("return 1e-9 * x + self.b", init="self.b = nn.Parameter(torch.randn(40))",
                                          finding=CONSTANT, says="output 0: "),
    "count_of_elements": Example("return torch.full((1,), float(x.numel()))", finding=CONSTANT, says="other inputs"),
    "same_inputs_in_every_draw": Example("return x.cumsum(0)", inputs=("torch.ones(24, 40)",), finding=CONSTANT,
                                         says="other inputs"),
    "argmax_of_one_value": Example("return x.unsqueeze(1).argmax(1)", finding=CONSTANT, says="zeros"),
    "second_output_zero": Example("return 2 * x, torch.relu(-x.abs())", finding=CONSTANT, says="output 1"),
    "unused_input": Example("return torch.sin(x)", inputs=(X, X), finding=INPUT, says="input 1"),
    "input_that_drowns": Example("return x + 1e-13 * y", inputs=(X, X), finding=INPUT, says="input 1"),
    "temperature_of_an_argmax": Example("return (x * y).argmax(1)", inputs=(X, "torch.rand(24, 1).exp()"),
                                        finding=INPUT, says="input 1"),
    "unused_weight": Example("return torch.sin(x)", init=PARAMETER, finding=WEIGHT, says="weight w"),
    "bias_before_a_softmax": Example("return torch.softmax(x + self.b, 1)", finding=WEIGHT, says="weight b",
                                     init="self.b = nn.Parameter(torch.randn(1))"),
    "sum_of_centred_values": Example("return (x - x.mean(1, keepdim=True)).sum(1)", finding=ROUNDING, says="output 0"),
    "probabilities_less_one": Example("return torch.softmax(x, 1).sum(1) - 1", finding=ROUNDING, says="output 0"),
    "relu_of_what_is_positive": Example("return torch.relu(torch.sigmoid(x))", finding=REDUNDANT, says="relu"),
    "relu_twice": Example("return torch.relu(torch.relu(x))", finding=REDUNDANT, says="relu"),
    "relu_twice_as_modules": Example("return self.net(x)", init="self.net = nn.Sequential(nn.ReLU(), nn.ReLU())",
                                     finding=REDUNDANT, says="relu"),
    "bias_of_zeros": Example("return torch.tanh(x @ self.w + self.b)", finding=REDUNDANT, says="add",
                             init=f"{PARAMETER}\nself.b = nn.Parameter(torch.zeros(40))"),
    "clamp_that_never_clamps": Example("return torch.clamp(torch.tanh(x), -2.0, 2.0)", finding=REDUNDANT, says="clamp"),
    "maximum_over_one_value": Example("return torch.tanh(x).unsqueeze(1).max(1)[0]", finding=REDUNDANT, says="max"),
    "scaled_before_a_norm": Example("return F.layer_norm(3 * x, (40,), self.g, self.b, 1e-14)", finding=REDUNDANT,
                                    says="mul", init="self.g = nn.Parameter(torch.randn(40))\n"
                                    "self.b = nn.Parameter(torch.randn(40))"),
    "softmax_before_an_argmax": Example("return torch.softmax(x, 1).argmax(1)", finding=REDUNDANT, says="softmax"),
    "product_times_zero": Example("return x + 0.0 * (x @ y)", inputs=(SQUARE, SQUARE), finding=REDUNDANT, says="mm"),
    "clamp_in_place": Example("x.mul_(2).clamp_(-1e9, 1e9)", finding=REDUNDANT, says="clamp_"),
    "dropout": Example("return F.dropout(x, 0.5, training=True)", finding=RANDOM, says="forward"),
    "product_of_positive_values": Example(
        "return torch.sigmoid(x) @ torch.sigmoid(y)", finding=PRECISION, says="16",
        inputs=("torch.rand(8, 2048).abs()", "torch.rand(2048, 8).abs()")),
    "raises": Example("raise ValueError('no such size')", finding="does not run", says="no such size"),
}

HONEST = {
    "softmax_by_hand": Example("e = torch.exp(x - x.max(1, keepdim=True)[0])\nreturn e / e.sum(1, keepdim=True)"),
    "rms_norm_by_hand": Example("return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)"),
    "normalize": Example("return F.normalize(x, dim=1)"),
    "log_of_positive_values": Example("return torch.log(x + 1e-8)", inputs=(POSITIVE,), remarks=("no variants",)),
    "relu": Example("return torch.relu(x)"),
    "relu_of_uniform_values": Example("return torch.relu(x)", inputs=("torch.rand(24, 40)",),
                                      remarks=("redundant operator",)),
    "clamp": Example("return torch.clamp(x, -1.0, 1.0)"),
    "layer_norm": Example("return self.norm(x)", remarks=("neutral weights",), init="self.norm = nn.LayerNorm(40)"),
    "linear": Example("return torch.relu(self.layer(x))", init="self.layer = nn.Linear(40, 16)"),
    "argmax": Example("return x.argmax(1)"),
    "topk": Example("return x.topk(4, 1)"),
    "triangular_product": Example("return torch.tril(x @ y)", inputs=(f"{SQUARE}.tril()", f"{SQUARE}.tril()")),
    "cross_entropy": Example("return F.cross_entropy(x, y)", inputs=(X, "torch.randint(0, 40, (24,))")),
    "recurrence": Example("h = torch.zeros_like(x)\nfor _ in range(4):\n    h = torch.tanh(x + h @ self.w)\nreturn h",
                          init=PARAMETER.replace("40)", "40) / 8")),
    "causal_attention": Example(
        "s = (x @ y.mT) / 5\ns = s.masked_fill(torch.ones(24, 24).triu(1).bool(), float('-inf'))\n"
        "return torch.softmax(s, 1) @ z", inputs=(X, X, X)),
    "batch_norm": Example("return self.norm(x)", init="self.norm = nn.BatchNorm1d(40)", remarks=("neutral weights",)),
    "masked_sum": Example("return (x * y).sum(1)", inputs=(X, "torch.ones(24, 40).tril()"),
                          remarks=("fixed input", "no variants")),
    "dropout_in_evaluation": Example("return F.dropout(2 * x, 0.5, training=False)"),
    "in_place": Example("x.mul_(2).add_(y)", inputs=(X, X)),
    "mean_of_positive_values": Example("return x.abs().mean(1)", inputs=("torch.randn(24, 4096)",),
                                       remarks=("low precision",)),
    "two_layers_of_one_kind": Example("return self.net(x)", init="self.net = nn.Sequential(nn.Linear(40, 40), "
                                      "nn.ReLU(), nn.Linear(40, 40), nn.ReLU())"),
}
