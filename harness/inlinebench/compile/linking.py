"""Links objects into the library that a candidate loads, with the same libraries as torch's own builds."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.ninja_syntax import CXX, IN, OUT, Expanded, Steps, command, split


def add_link(
    steps: Steps, request: BuildRequest, library: str, objects: Sequence[str], further: Sequence[str] = (), *,
    cuda: bool,
) -> None:
    """Adds the command that links objects into the library, with torch's libraries for CUDA or without, then `further`
    flags. Raises BadRequest for invalid flags."""
    torch = [Expanded("-L$torch/lib"), *(f"-l{name}" for name in _torch_libraries(cuda))]
    if cuda:
        # The stubs replace the driver's library at link time, because a machine without a GPU lacks it.
        torch += [Expanded("-L$cuda/lib64"), "-lcudart", Expanded("-L$cuda/lib64/stubs")]
    link = command([CXX, "-shared", IN, *split(request.extra_ldflags), *torch, *further, "-o", OUT])
    steps.add("link", link, library, " ".join(objects))


def _torch_libraries(cuda: bool) -> list[str]:
    """Returns torch's libraries in the order in which torch links them."""
    return ["c10", *["c10_cuda"] * cuda, "torch_cpu", *["torch_cuda"] * cuda, "torch", "torch_python"]
