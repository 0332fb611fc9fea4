"""The last step of a build: objects are linked to the library that a candidate loads.

With slim headers and when precompiled ones are there, the linker gets stand-ins for torch's libraries, which are
quicker to read; what comes out is the same (prefix/stand_ins.sh says why). A solution that has a say in the linking
gets torch's own: by its flags an open name may be an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.build import toolchain
from harness.build.prefix import PREFIX_DIR, STAND_INS
from harness.build.request import BuildRequest
from harness.build.words import CXX, IN, OUT, Expanded, command, split

_SCRIPT = f"{STAND_INS}.sh"


def link_lines(
    request: BuildRequest, library: str, objects: Sequence[str], further: Sequence[str] = (), *, cuda: bool, slim: bool
) -> list[str]:
    """The lines of a ninja file that link objects to the library, with torch's libraries for CUDA or without, and
    `further` flags behind them. Raises BadRequest for flags that can't be read."""
    own = split(request.extra_ldflags)
    torch = [f"-l{name}" for name in _torch_libraries(cuda)]
    if slim and not own:
        # Some linkers leave out the names of libraries that nothing is needed of, as it is with stand-ins.
        torch = [Expanded("-L$libraries"), "-Wl,--push-state,--no-as-needed", *torch, "-Wl,--pop-state"]
    else:
        torch = [Expanded("-L$torch/lib"), *torch]
    if cuda:
        # The stubs stand in for the driver's library, which a machine without a GPU lacks, while a solution is linked.
        torch += [Expanded("-L$cuda/lib64"), "-lcudart", Expanded("-L$cuda/lib64/stubs")]
    link = command([CXX, "-shared", IN, *own, *torch, *further, "-o", OUT])
    return ["rule link", f"  command = {link}", "", f"build {library}: link {' '.join(objects)}", ""]


def stand_in_files() -> dict[str, str]:
    """What `stand_in_lines` needs."""
    return {_SCRIPT: (PREFIX_DIR / _SCRIPT).read_text(encoding="utf-8")}


def stand_in_lines(*, cuda: bool) -> list[str]:
    """The lines of a ninja file that make the stand-ins."""
    further = Expanded("$cuda/lib64/libcudart.so") if cuda else ""
    libraries = [Expanded(f"$torch/lib/lib{name}.so") for name in _torch_libraries(cuda)]
    make = command(["sh", _SCRIPT, CXX, further, *libraries])
    return ["rule stand_ins", f"  command = {make}", "", f"build {STAND_INS}: stand_ins", ""]


def libraries_place(prefixes: Path) -> str:
    """The folder for `$libraries`: with stand-ins, if `prefixes` has them, else with torch's own."""
    made = prefixes / STAND_INS
    return str(made if made.is_dir() else toolchain.torch().library_dir)


def _torch_libraries(cuda: bool) -> list[str]:
    """In the order in which torch links them."""
    return ["c10", *["c10_cuda"] * cuda, "torch_cpu", *["torch_cuda"] * cuda, "torch", "torch_python"]
