"""What a problem's work needs at least: the bytes that must move, and the reference's floating-point operations.

Both are lower bounds only if the reference does nothing needless. A weight of which few rows are read (an embedding), a
product with a diagonal or triangular matrix, causal attention, or an input that is overwritten without being read
makes them too large, and a solution could be faster than its roofline. Such a problem states its own counts:

    def work():
        return {"bytes": 4 * (N + 2 * N * M), "flops": N * M}

Either may be left out, and is then counted. What the counter doesn't know (elementwise operations, recurrent layers of
cuDNN, Fourier transforms) counts as no operation, which only makes the roofline time shorter.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from inlinebench.problem import problem_file
from inlinebench.problem.forward import InputForm, Output, run
from inlinebench.problem.inputs import Draw
from inlinebench.problem.memory import free_bytes
from inlinebench.problem.problem_file import ProblemError, describe
from inlinebench.timing.roofline import Work

COUNTS = ("bytes", "flops")
HELP = 'work() gives what a call needs at least, as {"bytes": ..., "flops": ...} or one of the two, in whole numbers'
SEED = 3


def work_of(
    module: types.ModuleType, model: torch.nn.Module, drawn: Draw, output: Output, *, mutated: Collection[int],
    storages: Collection[int], device: torch.device, tf32: bool = False,
) -> Work:
    """The work of one call, after a forward of the reference.

    `model` has run and is left alone, with all random generators. `drawn` are the inputs as they were drawn; `mutated`
    the positions of those that forward changed; `storages` where the inputs lay that it ran on, so that an output that
    lies there is not written again. `tf32` says that the reference may use TF32.

    Runs the reference once more on copies, if the problem doesn't state both counts. Where that fails, the operations
    and the changes of states count as none, and the work's note says why. Raises ProblemError if the problem's own
    counts are none.
    """
    counts = stated(module)
    traced = _Traced() if len(counts) == len(COUNTS) else _trace(module, model, drawn, output, device)
    weights = _weights(model)
    read = memory_bytes([*drawn.tensors, *weights])
    changed = memory_bytes(drawn.tensors[index] for index in mutated)
    elsewhere = {*storages, *(tensor.untyped_storage().data_ptr() for tensor in weights)}
    written = memory_bytes(tensor for tensor in output.tensors if tensor.untyped_storage().data_ptr() not in elsewhere)
    return Work(
        bytes=counts.get("bytes", read + written + changed + traced.state_bytes),
        flops=counts.get("flops", traced.flops),
        dtype=_accuracy([*output.tensors, *drawn.tensors, *weights], tf32=tf32),
        stated=bool(counts),
        note=traced.note,
    )


def stated(module: types.ModuleType) -> dict[str, int]:
    """The counts that a problem states; empty if it has no `work`. Raises ProblemError for anything else."""
    if not hasattr(module, "work"):
        return {}
    try:
        given = module.work()
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{module.__file__}: work() raises {describe(error)}; {HELP}") from error
    if not isinstance(given, Mapping) or not given or not set(given) <= set(COUNTS):
        raise ProblemError(f"{module.__file__}: work() gives {_shortened(given)}; {HELP}")
    for name, count in given.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ProblemError(f"{module.__file__}: work() gives {_shortened(count)} for {name}; {HELP} (// divides)")
    return dict(given)


def memory_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """The bytes of memory that tensors cover: those of a shared storage, of an expanded tensor, and of several tensors
    that overlap count once. Of tensors that overlap in part, at most the stretch from the first to the last byte."""
    pieces: dict[tuple[torch.device, int], set[_Piece]] = {}
    for tensor in tensors:
        if _has_memory(tensor) and tensor.numel():
            place = tensor.device, tensor.untyped_storage().data_ptr()
            pieces.setdefault(place, set()).add(_Piece.of(tensor))
    return sum(min(sum(piece.bytes for piece in here), _stretch(here)) for here in pieces.values())


@dataclass(frozen=True)
class _Piece:
    """What a tensor covers of its storage: from where to where, in bytes, and how many of them are elements of its."""

    begin: int
    end: int
    bytes: int
    strides: tuple[int, ...]  # for equality alone: the same views count once

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Piece:
        size = tensor.element_size()
        begin = int(tensor.storage_offset()) * size
        moving = [(length, step) for length, step in zip(tensor.shape, tensor.stride(), strict=True) if step]
        extent, elements = 1, 1
        for length, step in moving:
            extent += (length - 1) * step
            elements *= length
        return cls(begin, begin + extent * size, min(elements, extent) * size, tensor.stride())


def _stretch(pieces: Iterable[_Piece]) -> int:
    total = reached = 0
    for piece in sorted(pieces, key=lambda piece: piece.begin):
        total += max(0, piece.end - max(piece.begin, reached))
        reached = max(reached, piece.end)
    return total


@dataclass(frozen=True)
class _Traced:
    """What another forward showed: its operations, and the bytes of states that it changed."""

    flops: int = 0
    state_bytes: int = 0
    note: str = ""


def _trace(
    module: types.ModuleType, model: torch.nn.Module, drawn: Draw, output: Output, device: torch.device
) -> _Traced:
    needed = memory_bytes([*drawn.tensors, *_weights(model), *output.tensors])
    if needed > free_bytes(device):
        return _Traced(note="operations not counted: no memory for another forward")
    with _generators_kept(device):
        try:
            return _count(problem_file.twin(module, model).to(device), drawn)
        except (torch.OutOfMemoryError, MemoryError):
            return _Traced(note="operations not counted: no memory for another forward")
        except Exception as error:  # noqa: BLE001 - the reference may do what a dispatch mode or a copy of it can't
            # An error that broke the device comes back with the next thing that is asked of it.
            return _Traced(note=f"operations not counted: {describe(error)}")


def _count(model: torch.nn.Module, drawn: Draw) -> _Traced:
    from torch.utils.flop_counter import FlopCounterMode  # which brings Triton: most of what a judge starts has no need

    before = {name: buffer.detach().clone() for name, buffer in model.named_buffers() if _has_memory(buffer)}
    form = InputForm(drawn.skeleton, drawn.is_tensor)
    arguments = form.arguments([tensor.clone() for tensor in drawn.tensors], drawn.non_tensors)
    _spare_dynamo()
    with FlopCounterMode(display=False) as counter:
        run(model, arguments, SEED)
    changed = [
        buffer for name, buffer in model.named_buffers()
        if _has_memory(buffer) and not (name in before and _identical(buffer, before[name]))
    ]
    return _Traced(int(counter.get_total_flops()), memory_bytes(changed))


def _spare_dynamo() -> None:
    """Keeps the counter from importing all of TorchDynamo, which takes seconds, only to say that it isn't to trace it.

    Torch looks for this attribute before it imports; where a version doesn't, nothing is lost but the time.
    """
    from torch.utils import flop_counter

    mode: Any = getattr(flop_counter, "_FlopCounterMode", flop_counter.FlopCounterMode)
    dispatch = getattr(mode.__torch_dispatch__, "__wrapped__", None)
    if dispatch is not None:
        setattr(dispatch, "__dynamo_disable", dispatch)


def _weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if _has_memory(tensor)]


def _has_memory(tensor: torch.Tensor) -> bool:
    """Not a lazy one that no forward has given a shape, nor a sparse one, whose memory can't be looked at. They count
    as nothing."""
    return not is_lazy(tensor) and tensor.layout is torch.strided


def _accuracy(tensors: Iterable[torch.Tensor], *, tf32: bool) -> str:
    """The coarsest floating dtype among the tensors: products of bfloat16 values are exact in float32, so an output of
    float32 doesn't make them need float32's slower units."""
    real = {_real(tensor.dtype) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()}
    # By name where equally long: bfloat16, which has fewer digits, comes before float16.
    coarsest = min(real, key=lambda dtype: (dtype.itemsize, str(dtype)), default=torch.float32)
    name = str(coarsest).removeprefix("torch.")
    return "tf32" if tf32 and name == "float32" else name


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype


def _identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    # As bytes: a NaN that stayed is no change.
    flat, non_tensors = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(flat, non_tensors)


@contextmanager
def _generators_kept(device: torch.device) -> Iterator[None]:
    """Gives every generator that `seed_all` seeds its state back."""
    numpy = sys.modules.get("numpy")
    python, drawn = random.getstate(), numpy.random.get_state() if numpy else None
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        if numpy:
            numpy.random.set_state(drawn)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
