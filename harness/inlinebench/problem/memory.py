"""Estimates the memory that a problem needs, and reads how much a device has."""

from __future__ import annotations

import resource
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn.parameter import is_lazy

from inlinebench.problem import problem_file
from inlinebench.problem.forward import Output
from inlinebench.problem.inputs import Draw, draw
from inlinebench.wire.arena import TensorMeta, lay_out


def least_bytes(inputs: Iterable[TensorMeta], model: torch.nn.Module, outputs: Iterable[TensorMeta]) -> int:
    """Returns a lower bound of the device memory that an evaluation needs, in bytes.

    It counts the shared inputs and one more draw of them, the model's weights, and the outputs of reference and
    solution.
    """
    weights = [tensor for tensor in (*model.parameters(), *model.buffers()) if not is_lazy(tensor)]
    input_bytes, output_bytes = (lay_out(list(metas))[1] for metas in (inputs, outputs))
    return 2 * input_bytes + sum(tensor.numel() * tensor.element_size() for tensor in weights) + 2 * output_bytes


def meta_bytes(module: types.ModuleType) -> int:
    """Returns `least_bytes` of a problem, or 0 if the problem cannot run on PyTorch's meta device.

    The meta device computes shapes without allocating memory. Its first operation takes seconds, because PyTorch then
    imports its compiler.
    """
    meta = torch.device("meta")
    try:
        drawn: Draw = draw(module, 0, meta)
        with meta:
            model = problem_file.construct(module)
    except Exception:  # noqa: BLE001 - any failure on the meta device only means that there is no estimate
        return 0
    return least_bytes(drawn.metas, model, _meta_outputs(model, drawn))


def _meta_outputs(model: torch.nn.Module, drawn: Draw) -> Sequence[TensorMeta]:
    from inlinebench.problem.forward import InputForm, run

    try:
        form = InputForm(drawn.skeleton, drawn.is_tensor)
        return Output.of(run(model, form.arguments(drawn.tensors, drawn.non_tensors), 0)).metas
    except Exception:  # noqa: BLE001 - for example, a forward that reads values cannot run on the meta device
        return ()


@contextmanager
def host_refuses_more_than(size: int) -> Iterator[None]:
    """Limits the host memory that this process can allocate in addition, to `size` bytes.

    Larger allocations fail immediately. Without the limit, Linux would grant them and kill some process on use.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _own_bytes() + size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _own_bytes() -> int:
    """Returns the bytes of this process that RLIMIT_DATA counts. Raises OSError if /proc lacks the number."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmData")


def least_of(most: int | None, free: int) -> int:
    """Returns the bytes that may be used: the free bytes, limited to `most` if that is not None."""
    return free if most is None else min(free, most)


def describe_shortage(needed: int | None, free: int, device: torch.device, most: int | None = None) -> str:
    """Returns a one-line message about a lack of memory.

    Args:
        needed: the bytes that the problem needs, or None if only known to be too many.
        free: the bytes that are free on the device.
        device: the device.
        most: the limit that the user set in bytes, if any.
    """
    allowed = least_of(most, free)
    problem = f"needs at least {needed / 2**30:.3g} GiB" if needed else "needs more memory than is available"
    limit = "are free there" if allowed == free else "are allowed by --max-memory"
    return f"{problem} on {device}; {allowed / 2**30:.3g} GiB {limit} (use --set to make the problem smaller)"
