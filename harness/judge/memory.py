"""How much memory a problem needs, and how much a device has."""

from __future__ import annotations

import types

import torch

from harness.judge import problem as problem_file
from harness.judge.forward import Output
from harness.judge.inputs import Draw, draw
from harness.sandbox.watchdog import available_bytes


def meta_bytes(module: types.ModuleType) -> int:
    """A lower bound of the bytes that inputs, one draw beside them, weights and outputs take on a device.

    Found on torch's meta device, which computes shapes and allocates nothing; 0 where the problem can't run there.
    """
    meta = torch.device("meta")
    try:
        drawn: Draw = draw(module, 0, meta)
        arguments = list(drawn.tensors)
        with meta:
            model = problem_file.construct(module)
        weights = [*model.parameters(), *model.buffers()]
    except Exception:  # noqa: BLE001 - any failure on the meta device only means that no estimate can be made there
        return 0
    return 2 * _bytes(arguments) + _bytes(weights) + _output_bytes(model, drawn)


def _output_bytes(model: torch.nn.Module, drawn: Draw) -> int:
    from harness.judge.forward import InputForm, run

    try:
        form = InputForm(drawn.skeleton, drawn.is_tensor)
        return 2 * _bytes(Output.of(run(model, form.arguments(drawn.tensors, drawn.others), 0)).tensors)
    except Exception:  # noqa: BLE001 - as above: a forward that reads values has no shapes on the meta device
        return 0


def _bytes(tensors: object) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)  # type: ignore[attr-defined]


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
