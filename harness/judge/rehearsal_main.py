"""The rehearsal process: serves rehearsals over the inherited connection until it closes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

import torch

from harness.judge.rehearsal import rehearse
from harness.wire.arithmetic import exact_arithmetic
from harness.wire.processes import die_with_parent


def main(arguments: Sequence[str]) -> int:
    """Takes the connection's descriptor; the first message has the device's name and whether TF32 is on."""
    die_with_parent()
    connection = Connection(int(arguments[0]))
    try:
        name, tf32 = connection.recv()
    except EOFError:
        return 0
    device = torch.device(name)
    exact_arithmetic(tf32=tf32)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # starts CUDA, while the judge does something else
    while True:
        try:
            problem, variants, excluded, most = connection.recv()
        except EOFError:
            return 0
        if device.type == "cuda" and most is not None:  # what can't be told beforehand then runs out of memory
            whole = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), device)
        connection.send(rehearse(problem, device, variants, excluded, report=connection.send, most=most))
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
