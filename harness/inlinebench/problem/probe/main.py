"""The probe process: probes one problem after the other, until the judge closes the connection."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

import torch

from inlinebench.devices.registry import of, wake
from inlinebench.wire.arithmetic import exact_arithmetic


def serve_judge(connection: Connection) -> None:
    """Serves the judge. It receives the requested device and the environment, then the device's name and whether TF32
    is on, then the problems."""
    try:
        wanted, environment = connection.recv()
        os.environ.clear()
        os.environ.update(environment)
        wake(wanted)
        from torch.utils import flop_counter  # noqa: F401 - imports Triton, which takes time, while CUDA starts

        from inlinebench.problem.own_code import TorchSettings, report_steps
        from inlinebench.problem.probe.probe import run_probe
        from inlinebench.problem.probe.records import ProbeDone

        name, tf32 = connection.recv()
    except EOFError:
        return
    device = torch.device(name)
    exact_arithmetic(tf32=tf32)
    report_steps(connection.send, device)
    of(device).synchronize()  # waits for CUDA to start while the judge does other work
    settings = TorchSettings()
    while True:
        try:
            problem, variants, excluded, most = connection.recv()
        except EOFError:
            return
        if most is not None:
            of(device).limit_memory(most)
        settings.restore()  # what the previous problem set
        outcome = run_probe(problem, device, variants, excluded, report=connection.send, most=most)
        connection.send(ProbeDone(outcome, of(device).is_healthy()))
