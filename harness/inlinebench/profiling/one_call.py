"""Makes one call of a solution for a profiler: `python -m inlinebench.profiling.one_call REQUEST` (JSON).

Nothing is checked or timed. The first call loads kernels and allocates memory; only the second call is profiled.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inlinebench.builds.request import BuildRequest
from inlinebench.candidate import load_inline, solution
from inlinebench.candidate.files import Files
from inlinebench.candidate.includes import for_build
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.registry import of, target_for
from inlinebench.messages import CONSTRUCTION_SEED, ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.inputs import Draw, draw
from inlinebench.wire.arithmetic import cast, exact_arithmetic
from inlinebench.wire.tree import merge, unflatten

BUILD_TIMEOUT_S = 600.0
SEED = 4


def main(request: dict[str, Any], scratch: Path) -> None:
    """Loads a solution from a copy of its files in `scratch`, calls it once, and calls it again under the profiler."""
    files = Files(scratch)
    device = torch.device(request["device"])
    exact_arithmetic(tf32=request["tf32"])
    torch.cuda.set_device(device)
    at = ProblemAt(Path(request["problem"]), request["shape"], request["constants"], request["precision"])
    module = problem_file.load_at(at)
    target = target_for(of(device).kind, of(device).architectures())
    settings = BuildSettings(BUILD_TIMEOUT_S, full_headers=request["full_headers"])
    service = BuildService(Path(request["cache"]), target, settings)

    def build(facts: dict[str, Any]) -> str:
        wanted = BuildRequest.from_json(for_build(facts, files))
        outcome = service.build(replace(wanted, readable=tuple(request["given"])))
        if outcome.library is None:
            raise RuntimeError(outcome.reason)
        return str(outcome.library)

    load_inline.install(build)
    arguments, named = problem_file.init_inputs(module)
    os.chdir(scratch)
    path = files.copy(Path(request["solution"]), map(Path, request["given"]))
    model = solution.construct(solution.import_class(path, "ModelNew"), path, arguments, named, CONSTRUCTION_SEED)
    if at.precision is not None:
        cast(model, at.precision)
    model.to(device)
    drawn = draw(module, SEED, device)

    with torch.no_grad():
        model(*_arguments(drawn))
        given = _arguments(drawn)
        torch.cuda.synchronize(device)
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        model(*given)
        torch.cuda.synchronize(device)
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def _arguments(drawn: Draw) -> Any:
    """Returns copies of the inputs, because a solution may change them."""
    tensors = [tensor.clone() for tensor in drawn.tensors]
    return unflatten(drawn.skeleton, merge(drawn.is_tensor, tensors, copy.deepcopy(drawn.non_tensors)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(json.loads(sys.argv[1]), Path(folder).resolve())
