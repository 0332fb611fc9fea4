"""The rehearsal process: serves rehearsals over a connection until it closes."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

import torch

from inlinebench.wire import bytecode
from inlinebench.wire.arithmetic import exact_arithmetic
from inlinebench.wire.wake import wake


def serve_judge(connection: Connection) -> None:
    """Takes the device that is wanted and the environment; its name, and whether TF32 is on; then one problem after
    the other."""
    try:
        wanted, environment = connection.recv()
        os.environ.clear()
        os.environ.update(environment)
        wake(wanted)
        from torch.utils import flop_counter  # noqa: F401 - meanwhile: it brings Triton

        from inlinebench.problem.probe import Done, run_probe

        bytecode.leave()
        name, tf32 = connection.recv()
    except EOFError:
        return
    device = torch.device(name)
    exact_arithmetic(tf32=tf32)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # starts CUDA, while the judge does something else
    while True:
        try:
            problem, variants, excluded, most = connection.recv()
        except EOFError:
            return
        if device.type == "cuda" and most is not None:  # what can't be told beforehand then runs out of memory
            whole = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), device)
        outcome = run_probe(problem, device, variants, excluded, report=connection.send, most=most)
        connection.send(Done(outcome, _is_healthy(device)))


def _is_healthy(device: torch.device) -> bool:
    """Whether the device does as it is told, with what is cached there given back."""
    if device.type != "cuda":
        return True
    try:
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    except RuntimeError:  # what a kernel has done may show only now, and then for ever
        return False
    return True

