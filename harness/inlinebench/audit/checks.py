"""The checks of an audit. Each takes a prepared problem and yields what it finds.

A check proposes answers that need less work than the reference, and asks the rule by which solutions are judged whether
they would pass: in calls with inputs as drawn, and in one with each variant of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import torch

from inlinebench.audit.operators import Operators, Removal
from inlinebench.audit.prepared import PLAIN_CALLS, Call, Expected, Prepared
from inlinebench.audit.records import Flaw
from inlinebench.compare.tolerance import compare
from inlinebench.problem.forward import Tensors
from inlinebench.problem.variants import Variant

MOST_REMOVALS = 200
"""The most operators that are left out in turn."""
MOST = 0.5
"""An output is rounding if the reference's error exceeds the limit in more than this share of its elements."""
LARGE = 1e4
"""The factor by which inputs are enlarged to find out whether an operator protects from overflow."""
FEWEST_ROUNDED = 16
"""The fewest elements of the outputs from which precision can be concluded."""
PRODUCTS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "convolution", "mv", "addmv", "dot",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
})
"""Operators that tensor cores can compute."""
OTHER_SEED = 1 << 20
"""What is added to a seed for other inputs of the same kind."""

Answer = Callable[[Call], "Mapping[str, torch.Tensor] | None"]
"""What a solution might return in a call. None: it cannot return anything."""


@dataclass(frozen=True)
class Trial:
    """How the calls went in which an answer was tried."""

    passed: int
    """The calls that it passes, up to the first one that it does not."""
    calls: int
    """All calls."""
    worst: float
    """The largest error in these calls as a share of the limit."""
    stopped_by: Variant | None
    """The variant of the call that it does not pass."""

    @property
    def fault(self) -> bool:
        """Whether the answer passes all calls."""
        return self.stopped_by is None

    @property
    def found(self) -> bool:
        """Whether it passes all calls with inputs as drawn."""
        return self.passed >= PLAIN_CALLS

    def finding(self, name: str, text: str, *, remark: bool = False, **about: Any) -> Flaw:
        """Returns the finding that this answer passes. `about` are further figures."""
        if self.fault:
            calls = f"in all {self.calls} calls (largest error {self.worst:.2g} of the limit)"
        else:
            calls = f"for inputs as drawn; only changed inputs ({self.stopped_by}) reveal it"
        figures = {"calls": self.calls, "passed": self.passed, "worst_share_of_limit": self.worst,
                   "as_drawn_only": not self.fault, **about}
        return Flaw(name, self.fault and not remark, f"{text} {calls}", figures)


def tried(prepared: Prepared, answer: Answer) -> Trial:
    """Tries an answer in call after call, until one does not pass."""
    worst, total = 0.0, len(prepared.kinds)
    for number, call in enumerate(prepared.calls()):
        share = call.share(answer(call))
        if not share <= 1:
            return Trial(number, total, worst, call.variant)
        worst = max(worst, share)
    return Trial(total, total, worst, None)


def random_numbers(prepared: Prepared) -> Iterator[Flaw]:
    """Says whether the outputs depend on random numbers that `forward` draws."""
    if prepared.probed.random:
        yield Flaw("random numbers", True, "forward draws random numbers: a solution must draw the same numbers "
                      "from torch's generator, in the same order")


def variants(prepared: Prepared) -> Iterator[Flaw]:
    """Remarks on inputs whose values never change but by the draw, and on a reference without an oracle."""
    probed = prepared.probed
    free = {position for positions in probed.variants.values() for position in positions}
    floats = [index for index, meta in enumerate(probed.inputs) if getattr(torch, meta.dtype).is_floating_point]
    left = [index for index in floats if index not in free]
    if left:
        yield Flaw("no variants", False, f"{_inputs(left)} always used as drawn, because "
                      f"{'their' if len(left) > 1 else 'its'} values have a limited range or the reference is not "
                      "finite for others: behavior that depends on signs or magnitudes is not tested", {"inputs": left})
    if not probed.float64 and not probed.random and not probed.mutated:
        yield Flaw("no oracle", False, "the reference computes something else in float64, so outputs are compared "
                      "with the reference itself")


def only_rounding(prepared: Prepared) -> Iterator[Flaw]:
    """Finds outputs that are the reference's own error: more than its inputs explain in most elements, or larger than
    the output itself."""
    found: dict[str, list[tuple[float, float]]] = {}
    for call in islice(prepared.calls(), PLAIN_CALLS):
        for name, each in call.expected.items():
            if each.exact is not None and each.limit is not None and each.own.numel():
                against = compare(each.own, each.exact.to(each.own.dtype), each.exact, each.limit)
                found.setdefault(name, []).append((against.failed / against.count, _error(each.own, each.exact)))
    for name, pairs in found.items():
        share, error = (min(values) for values in zip(*pairs, strict=True))
        if share > MOST or error > 1:
            yield Flaw("only rounding", True, f"{prepared.label(name)} is mostly rounding error: the reference's own "
                          f"error is {error:.2g} times the output's size, and in {share:.0%} of the elements it is "
                          "larger than the tolerance of the inputs explains",
                          {"output": name, "error_by_size": error, "share_of_elements": share})


def _error(own: torch.Tensor, exact: torch.Tensor) -> float:
    """Returns the reference's error as a share of the output's size, over finite elements."""
    finite = torch.isfinite(own) & torch.isfinite(exact)
    error, size = (float(torch.linalg.vector_norm(each[finite])) for each in (own - exact, exact))
    if not size:
        return math.inf if error else 0.0
    return error / size


def constant_outputs(prepared: Prepared) -> Iterator[Flaw]:
    """Finds outputs that a solution can give without the work: zeros, means, or what other inputs gave."""
    first = next(prepared.calls())
    for name, each in first.expected.items():
        if not each.own.numel():
            continue
        for text, make in _constants(name, each):
            trial = tried(prepared, partial(_with, name, make))
            if trial.found:
                yield trial.finding("constant output", f"{prepared.label(name)}: {text} passes", output=name)
                break


def _with(name: str, make: Callable[[Call, torch.Tensor], torch.Tensor | None], call: Call) -> Tensors | None:
    """Returns the reference's tensors with the one of this name replaced."""
    value = make(call, call.expected[name].own)
    return None if value is None else {key: each.own for key, each in call.expected.items()} | {name: value}


def _constants(
    name: str, expected: Expected
) -> Iterator[tuple[str, Callable[[Call, torch.Tensor], torch.Tensor | None]]]:
    """Yields answers for one output, with their names."""
    shape, numeric = expected.own.shape, expected.limit is not None
    yield "a tensor of zeros", lambda _, own: torch.zeros_like(own)
    if expected.own.numel() > 1:
        yield ("one number everywhere, the mean," if numeric else "one number everywhere",
               lambda _, own: (_mean(own) if numeric else own.reshape(-1)[0]).expand(own.shape))
    yield "what the reference gives for other inputs", partial(_of_another_draw, name)
    for dimension, size in enumerate(shape):
        if size > 1 and size < expected.own.numel():
            yield (f"the same values along dimension {dimension}", partial(_along, dimension, numeric))


def _mean(own: torch.Tensor) -> torch.Tensor:
    return own.to(torch.complex128 if own.is_complex() else torch.float64).mean()


def _along(dimension: int, numeric: bool, _: Call, own: torch.Tensor) -> torch.Tensor:
    if not numeric:
        return own.narrow(dimension, 0, 1).expand(own.shape)
    wide = own.to(torch.complex128 if own.is_complex() else torch.float64)
    return wide.mean(dimension, keepdim=True).expand(own.shape)


def _of_another_draw(name: str, call: Call, _: torch.Tensor) -> torch.Tensor | None:
    other = call.run(inputs=call.others(OTHER_SEED))
    return None if other is None else other.get(name)


def inputs_without_effect(prepared: Prepared) -> Iterator[Flaw]:
    """Finds inputs whose values make no difference, and remarks on those that never change."""
    first = next(prepared.calls())
    others = first.others(OTHER_SEED)
    fixed = [index for index, (one, other) in enumerate(zip(first.inputs, others, strict=True))
             if one.numel() and torch.equal(one, other)]
    if fixed:
        yield Flaw("fixed input", False, f"{_inputs(fixed)} the same in every draw: a solution may ignore "
                      f"{'them' if len(fixed) > 1 else 'it'}", {"inputs": fixed})
    for index, tensor in enumerate(first.inputs):
        if index in fixed or not tensor.numel():
            continue
        trial = tried(prepared, partial(_other_input, index))
        if trial.found:
            yield trial.finding("input without effect", f"the reference's results for another input {index} pass",
                                input=index)


def _other_input(index: int, call: Call) -> Tensors | None:
    return call.run(inputs=[*call.inputs[:index], call.others(OTHER_SEED)[index], *call.inputs[index + 1:]])


def weights_without_effect(prepared: Prepared) -> Iterator[Flaw]:
    """Finds weights whose values make no difference, and remarks on those that are all zeros or all ones."""
    neutral = []
    for name, weight in prepared.weights().items():
        if not weight.numel():
            continue
        trial = tried(prepared, partial(_other_weight, name, weight))
        if trial.found:
            yield trial.finding("weight without effect", f"the reference's results for another weight {name} pass",
                                weight=name)
        elif bool((weight == weight.reshape(-1)[0]).all()) and float(weight.reshape(-1)[0].abs()) in (0.0, 1.0):
            neutral.append(name)
    if neutral:
        yield Flaw("neutral weights", False, f"{', '.join(neutral)}: all values are 0, or all are 1, so a solution "
                      "that leaves them out may pass; initialize them with random values", {"weights": neutral})


def _other_weight(name: str, weight: torch.Tensor, call: Call) -> Tensors | None:
    generator = torch.Generator(weight.device).manual_seed(OTHER_SEED)
    values = torch.randn(weight.shape, dtype=torch.float64, device=weight.device, generator=generator)
    size = float(torch.linalg.vector_norm(weight.double())) / math.sqrt(weight.numel())
    return call.run(weights={name: values * (size or 1.0)})


def redundant_operators(prepared: Prepared) -> Iterator[Flaw]:
    """Finds operators without which the results of the reference pass.

    Not those that protect from overflow and division by zero: without them, large inputs or zeros give no finite
    results where the reference does.
    """
    first = next(prepared.calls())
    with Operators(prepared.path) as seen:
        first.run()
    reported: set[int] = set()
    for removal in seen.removals[:MOST_REMOVALS]:
        if removal.site in reported or not first.share(_without(prepared, removal, first)) <= 1:
            continue
        trial = tried(prepared, partial(_without, prepared, removal))
        if trial.found and not _protects(prepared, removal, first):
            reported.add(removal.site)
            yield trial.finding("redundant operator", f"line {removal.line}: with {removal.operator} replaced by "
                                f"{removal.instead}, the reference's results pass", line=removal.line,
                                operator=removal.operator)
    if len(seen.removals) > MOST_REMOVALS:
        yield Flaw("too many operators", False, f"only the first {MOST_REMOVALS} of {len(seen.removals)} ways to "
                      "leave out an operator were tried")


def _without(prepared: Prepared, removal: Removal, call: Call) -> Tensors | None:
    return call.run(under=Operators(prepared.path, removal))


def _protects(prepared: Prepared, removal: Removal, call: Call) -> bool:
    """Whether an operator keeps results finite for large inputs, or for zeros."""
    for factor in (0.0, LARGE):
        inputs = [each * factor if each.is_floating_point() else each for each in call.inputs]
        whole, without = call.run(inputs=inputs), call.run(
            inputs=inputs, under=Operators(prepared.path, removal))
        if whole is None or without is None:
            continue
        if any(bool((torch.isfinite(whole[name]) & ~torch.isfinite(without[name])).any())
               for name in call.expected if whole[name].shape == without[name].shape):
            return True
    return False


def low_precision(prepared: Prepared) -> Iterator[Flaw]:
    """Finds float32 problems whose results pass though inputs and weights are rounded to fewer bits.

    It is a fault if the reference multiplies matrices, since tensor cores are much faster with fewer bits.
    """
    first = next(prepared.calls())
    elements = sum(each.own.numel() for each in first.expected.values() if each.own.dtype is torch.float32)
    if elements < FEWEST_ROUNDED or not _changes_values(prepared, first):
        return
    with Operators(prepared.path) as seen:
        first.run()
    multiplies = not PRODUCTS.isdisjoint(seen.names)
    coarsest: Flaw | None = None
    for name, rounded in ROUNDINGS.items():
        trial = tried(prepared, partial(_rounded, prepared, rounded))
        if not trial.found:
            break
        coarsest = trial.finding("low precision", f"the reference's results for inputs and weights rounded to {name} "
                                 "pass", remark=not multiplies, precision=name)
        if not trial.fault:
            break
    if coarsest is not None:
        yield coarsest


def _rounded(prepared: Prepared, rounded: Callable[[torch.Tensor], torch.Tensor], call: Call) -> Tensors | None:
    def of(tensor: torch.Tensor) -> torch.Tensor:
        return rounded(tensor) if tensor.dtype is torch.float32 else tensor

    return call.run(inputs=list(map(of, call.inputs)),
                    weights={name: of(weight) for name, weight in prepared.weights().items()})


def _changes_values(prepared: Prepared, call: Call) -> bool:
    """Whether an input or a weight has values that 16 bits cannot hold."""
    return any(not torch.equal(_to_bf16(tensor), tensor) for tensor in (*call.inputs, *prepared.weights().values())
               if tensor.dtype is torch.float32)


def _to_bf16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16).float()


def _to_fp16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float16).float()


def _to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Rounds to 10 bits of mantissa, to nearest, ties to even."""
    words = tensor.contiguous().view(torch.int32)
    return ((words + 0xFFF + ((words >> 13) & 1)) & ~0x1FFF).view(torch.float32)


ROUNDINGS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "TF32": _to_tf32, "float16": _to_fp16, "bfloat16": _to_bf16,
}
"""The precisions to try, the finest first. If one does not pass, coarser ones do not either."""


def _inputs(positions: list[int]) -> str:
    """Returns the subject of a sentence, with its verb."""
    return f"input{'s' * (len(positions) > 1)} {', '.join(map(str, positions))} {'are' if len(positions) > 1 else 'is'}"
