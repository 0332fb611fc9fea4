"""How much memory a problem needs, and how much a device has."""

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
from inlinebench.sandbox.watchdog import available_bytes
from inlinebench.wire.arena import TensorMeta, lay_out


def least_bytes(inputs: Iterable[TensorMeta], model: torch.nn.Module, outputs: Iterable[TensorMeta]) -> int:
    """A lower bound of what judging takes on a device: inputs and one draw beside them, the model's weights, the
    reference's outputs and the solution's."""
    weights = [tensor for tensor in (*model.parameters(), *model.buffers()) if not is_lazy(tensor)]
    given, made = (lay_out(list(metas))[1] for metas in (inputs, outputs))
    return 2 * given + sum(tensor.numel() * tensor.element_size() for tensor in weights) + 2 * made


def meta_bytes(module: types.ModuleType) -> int:
    """`least_bytes` of a problem, found on torch's meta device, which computes shapes and allocates nothing; 0 where
    the problem can't run there.

    The first operation there has torch import its compiler, which takes seconds.
    """
    meta = torch.device("meta")
    try:
        drawn: Draw = draw(module, 0, meta)
        with meta:
            model = problem_file.construct(module)
    except Exception:  # noqa: BLE001 - any failure on the meta device only means that no estimate can be made there
        return 0
    return least_bytes(drawn.metas, model, _meta_outputs(model, drawn))


def _meta_outputs(model: torch.nn.Module, drawn: Draw) -> Sequence[TensorMeta]:
    from inlinebench.problem.forward import InputForm, run

    try:
        form = InputForm(drawn.skeleton, drawn.is_tensor)
        return Output.of(run(model, form.arguments(drawn.tensors, drawn.non_tensors), 0)).metas
    except Exception:  # noqa: BLE001 - as above: a forward that reads values has no shapes on the meta device
        return ()


@contextmanager
def host_refuses_more_than(size: int) -> Iterator[None]:
    """This process gets no more than so many bytes of the host's memory beside those that it has. An allocation then
    fails, where Linux would promise the memory and kill some process when it is used."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _own_bytes() + size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _own_bytes() -> int:
    """What RLIMIT_DATA counts of this process. Raises OSError where /proc doesn't say."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmData")


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    return available_bytes()


def least_of(most: int | None, free: int) -> int:
    """The bytes that may be used: those that are free, and no more than were allowed."""
    return free if most is None else min(free, most)


def describe_shortage(needed: int | None, free: int, device: torch.device, most: int | None = None) -> str:
    """One line: the bytes needed (None: more than there are), and those that are free or allowed."""
    allowed = least_of(most, free)
    wanted = f"needs at least {needed / 2**30:.3g} GiB" if needed else "needs more memory than it can have"
    limit = "are free there" if allowed == free else "are what --max-memory allows"
    return f"{wanted} on {device}; {allowed / 2**30:.3g} GiB {limit} (--set makes the problem smaller)"
