"""Counts the work of one call: the bytes that must be moved, and the reference's floating-point operations.

Both counts are lower bounds only if the reference does nothing unnecessary. They are too large for an embedding that
reads few rows of its weight, a product with a diagonal or triangular matrix, causal attention, or an input that is
overwritten without being read. A solution could then be faster than its roofline. Such a problem defines the counts:

    def work():
        return {"bytes": 4 * (N + 2 * N * M), "flops": N * M}

Either key may be left out and is then counted. Operations that PyTorch's FLOP counter does not know (elementwise
operations, recurrent layers of cuDNN, Fourier transforms) count as zero, which only makes the roofline time shorter.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from inlinebench.devices.registry import of
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.forward import InputForm, Output, run
from inlinebench.problem.inputs import Draw
from inlinebench.problem.problem_file import ProblemError, describe
from inlinebench.timing.roofline import Work

COUNTS = ("bytes", "flops")
HELP = 'work() must return the minimum that a call needs, as {"bytes": ..., "flops": ...} or one of them, as integers'
SEED = 3
"""The seed of the forward whose operations are counted."""


@dataclass(frozen=True)
class Forwarded:
    """What one forward of the reference has done."""

    drawn: Draw
    """Its inputs as drawn."""
    output: Output
    """Its output."""
    mutated: Collection[int]
    """The positions of the inputs that it changed."""
    storages: Collection[int]
    """The addresses of its inputs' storages. An output there needs no further write."""


def work_of(
    module: types.ModuleType, model: torch.nn.Module, done: Forwarded, device: torch.device, *, tf32: bool = False,
    may_count: Callable[[], bool] = lambda: True,
) -> Work:
    """Returns the work of one call, after a forward of the reference.

    If the problem does not define both counts, a copy of the reference runs once more on copies of the inputs. If that
    fails, operations and changes of states count as zero, and the work's note says why. Model and random generators
    stay unchanged. Raises ProblemError if the problem's `work` is invalid.

    Args:
        module: the problem's module.
        model: the reference, which has run.
        done: the forward.
        device: where to run the copy.
        tf32: whether the reference may use TF32.
        may_count: is asked before the reference runs once more to count its operations.
    """
    counts, drawn, output = stated(module), done.drawn, done.output
    if len(counts) == len(COUNTS):
        traced = _Traced()
    elif may_count():
        traced = _trace(module, model, drawn, output, device)
    else:
        traced = _Traced(note="operations not counted: the reference crashes or hangs while they are counted")
    weights = _weights(model)
    read = memory_bytes([*drawn.tensors, *weights])
    changed = memory_bytes(drawn.tensors[index] for index in done.mutated)
    elsewhere = {*done.storages, *(tensor.untyped_storage().data_ptr() for tensor in weights)}
    written = memory_bytes(tensor for tensor in output.tensors if tensor.untyped_storage().data_ptr() not in elsewhere)
    return Work(
        bytes=counts.get("bytes", read + written + changed + traced.state_bytes),
        flops=counts.get("flops", traced.flops),
        dtype=_accuracy([*output.tensors, *drawn.tensors, *weights], tf32=tf32),
        stated=bool(counts),
        note=traced.note,
    )


def stated(module: types.ModuleType) -> dict[str, int]:
    """Returns the counts that a problem's `work` gives, or {} if it has none for these calls.

    Raises ProblemError if it is invalid.
    """
    backward = problem_file.gradients(module) is not None
    if not hasattr(module, "work") or backward != (getattr(module, "BACKWARD", False) is True):
        return {}  # it counts the work of other calls
    try:
        with own_code.step("work()"):
            given = module.work()
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{module.__file__}: work() raises {describe(error)}; {HELP}") from error
    if not isinstance(given, Mapping) or not given or not set(given) <= set(COUNTS):
        raise ProblemError(f"{module.__file__}: work() returns {_shortened(given)}; {HELP}")
    for name, count in given.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ProblemError(f"{module.__file__}: work() returns {_shortened(count)} for {name}; {HELP} (divide with "
                               "//)")
    return dict(given)


def memory_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Returns the bytes of memory that tensors cover.

    Equal views of a storage count once, and so do the repeated elements of an expanded tensor. Tensors that overlap in
    part count with at most the bytes of their ranges' union.
    """
    pieces: dict[tuple[torch.device, int], set[_Piece]] = {}
    for tensor in tensors:
        if _has_memory(tensor) and tensor.numel():
            storage = tensor.device, tensor.untyped_storage().data_ptr()
            pieces.setdefault(storage, set()).add(_Piece.of(tensor))
    return sum(min(sum(piece.bytes for piece in shared), _union_bytes(shared)) for shared in pieces.values())


@dataclass(frozen=True)
class _Piece:
    """The part of a storage that a tensor covers, in bytes."""

    begin: int
    end: int
    bytes: int
    """The bytes between begin and end that are elements of the tensor."""
    strides: tuple[int, ...]
    """Only for equality, so that equal views count once."""

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Piece:
        size = tensor.element_size()
        begin = int(tensor.storage_offset()) * size
        strided = [(length, step) for length, step in zip(tensor.shape, tensor.stride(), strict=True) if step]
        extent, elements = 1, 1
        for length, step in strided:
            extent += (length - 1) * step
            elements *= length
        return cls(begin, begin + extent * size, min(elements, extent) * size, tensor.stride())


def _union_bytes(pieces: Iterable[_Piece]) -> int:
    """Returns the bytes in the union of the ranges from begin to end."""
    total = reached = 0
    for piece in sorted(pieces, key=lambda piece: piece.begin):
        total += max(0, piece.end - max(piece.begin, reached))
        reached = max(reached, piece.end)
    return total


@dataclass(frozen=True)
class _Traced:
    """What the counting forward found."""

    flops: int = 0
    """Its floating-point operations."""
    state_bytes: int = 0
    """The bytes of buffers that it changed."""
    note: str = ""
    """Why nothing was counted. Empty otherwise."""


def _trace(
    module: types.ModuleType, model: torch.nn.Module, drawn: Draw, output: Output, device: torch.device
) -> _Traced:
    needed = memory_bytes([*drawn.tensors, *_weights(model), *output.tensors])
    if needed > of(device).free_bytes():
        return _Traced(note="operations not counted: not enough memory for another forward")
    with _generators_kept(device):
        try:
            return _count(problem_file.second_model(module, model).to(device), drawn)
        except (torch.OutOfMemoryError, MemoryError):
            return _Traced(note="operations not counted: not enough memory for another forward")
        except Exception as error:  # noqa: BLE001 - a dispatch mode or a copy may not support what the reference does
            # A CUDA error is raised again by the next operation on the device.
            return _Traced(note=f"operations not counted: {describe(error)}")


def _count(model: torch.nn.Module, drawn: Draw) -> _Traced:
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton, which most processes do not need

    before = {name: buffer.detach().clone() for name, buffer in model.named_buffers() if _has_memory(buffer)}
    form = InputForm(drawn.skeleton, drawn.is_tensor)
    arguments = form.arguments([tensor.clone() for tensor in drawn.tensors], drawn.non_tensors)
    _avoid_dynamo_import()
    with FlopCounterMode(display=False) as counter:
        run(model, arguments, SEED)
    changed = [
        buffer for name, buffer in model.named_buffers()
        if _has_memory(buffer) and not (name in before and _identical(buffer, before[name]))
    ]
    return _Traced(int(counter.get_total_flops()), memory_bytes(changed))


def _avoid_dynamo_import() -> None:
    """Keeps the counter from importing TorchDynamo, which takes seconds, only to disable it for the counter.

    PyTorch checks for the attribute that is set here before the import. In a version that does not, only time is lost.
    """
    from torch.utils import flop_counter

    mode: Any = getattr(flop_counter, "_FlopCounterMode", flop_counter.FlopCounterMode)
    dispatch = getattr(mode.__torch_dispatch__, "__wrapped__", None)
    if dispatch is not None:
        setattr(dispatch, "__dynamo_disable", dispatch)


def _weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if _has_memory(tensor)]


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory can be counted. Lazy tensors without a shape and sparse tensors count as zero bytes."""
    return not is_lazy(tensor) and tensor.layout is torch.strided


def _accuracy(tensors: Iterable[torch.Tensor], *, tf32: bool) -> str:
    """Returns the name of the coarsest floating-point dtype among the tensors.

    Products of bfloat16 values are exact in float32, so a float32 output does not require the slower float32 units.
    """
    real = {_real(tensor.dtype) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()}
    # Dtypes of equal size are ordered by name: bfloat16, which has the shorter mantissa, comes before float16.
    coarsest = min(real, key=lambda dtype: (dtype.itemsize, str(dtype)), default=torch.float32)
    name = str(coarsest).removeprefix("torch.")
    return "tf32" if tf32 and name == "float32" else name


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype


def _identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    # As bytes, because NaN is not equal to itself.
    one_bytes, other_bytes = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(one_bytes, other_bytes)


@contextmanager
def _generators_kept(device: torch.device) -> Iterator[None]:
    """Restores the state of every random generator that `seed_all` seeds."""
    numpy = sys.modules.get("numpy")
    python, drawn = random.getstate(), numpy.random.get_state() if numpy else None
    try:
        with torch.random.fork_rng(of(device).generators()):
            yield
    finally:
        random.setstate(python)
        if numpy:
            numpy.random.set_state(drawn)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
