"""The probe process: probes one problem after the other, until the judge closes the connection."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

import torch

from inlinebench.wire.arithmetic import exact_arithmetic
from inlinebench.wire.wake import wake


def serve_judge(connection: Connection) -> None:
    """Serves the judge. It receives the requested device and the environment, then the device's name and whether TF32
    is on, then the problems."""
    try:
        wanted, environment = connection.recv()
        os.environ.clear()
        os.environ.update(environment)
        wake(wanted)
        from torch.utils import flop_counter  # noqa: F401 - imports Triton, which takes time, while CUDA starts

        from inlinebench.problem.own_code import Settings, report_steps
        from inlinebench.problem.probe.probe import run_probe
        from inlinebench.problem.probe.records import ProbeDone

        name, tf32 = connection.recv()
    except EOFError:
        return
    device = torch.device(name)
    exact_arithmetic(tf32=tf32)
    report_steps(connection.send, device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # waits for CUDA to start while the judge does other work
    settings = Settings()
    while True:
        try:
            problem, variants, excluded, most = connection.recv()
        except EOFError:
            return
        if device.type == "cuda" and most is not None:
            # Memory that cannot be estimated beforehand then fails to allocate.
            whole = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), device)
        settings.restore()  # what the previous problem set
        outcome = run_probe(problem, device, variants, excluded, report=connection.send, most=most)
        connection.send(ProbeDone(outcome, _is_healthy(device)))


def _is_healthy(device: torch.device) -> bool:
    """Frees the cached device memory. Returns whether the device still works."""
    if device.type != "cuda":
        return True
    try:
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    except RuntimeError:  # a kernel's error may be reported only now, and persists
        return False
    return True
