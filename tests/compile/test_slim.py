"""Libraries built with slim headers equal those built with torch's: in symbols, results and messages.

The compiler needs almost a minute for torch's headers in each file, so the tests build few sources with them.
"""

from __future__ import annotations

import functools
import json
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.candidate.load_inline import _Loader
from inlinebench.compile import toolchain
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.compile.slim import SLIM_DIR, further_headers
from inlinebench.device_kinds import kind_of
from inlinebench.devices.cpu.target import CpuTarget
from inlinebench.devices.cuda import driver
from inlinebench.devices.registry import target_for
from inlinebench.results.library import LIBRARY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
BUNDLED = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "solutions").glob("*/*.py")
                 if path.stem != LIBRARY)

BINDINGS = r"""
#include <optional>
#include <string>
#include <vector>

torch::Tensor scale(const torch::Tensor& x, double factor, std::optional<torch::Tensor> bias) {
  TORCH_CHECK(x.dim() == 2, "scale: x has ", x.dim(), " dimensions, not 2");
  torch::Tensor out = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    const scalar_t* from = x.data_ptr<scalar_t>();
    scalar_t* to = out.data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * static_cast<scalar_t>(factor);
  });
  return bias ? out + *bias : out;
}

int64_t pick(const std::vector<int64_t>& values, int64_t index) {
  TORCH_CHECK_INDEX(index < static_cast<int64_t>(values.size()), "pick: no value ", index);
  return values[index];
}

std::vector<std::string> describe(at::ScalarType type, c10::Device device, at::IntArrayRef sizes) {
  TORCH_CHECK_NOT_IMPLEMENTED(sizes.size() < 3, "describe: too many sizes");
  return {c10::toString(type), device.str(), std::to_string(at::zeros(sizes, at::dtype(type)).numel())};
}

int exported_value = 3;
extern "C" const char exported_text[] = "text";
namespace inner { int exported_function(float) { return exported_value; } }
"""
CALLS = [
    "scale(torch.arange(6.).view(2, 3), 2, None)", "scale(torch.ones(2, 3, dtype=torch.float64), 0.5, torch.ones(3))",
    "scale(torch.ones(3), 1, None)", "scale(torch.ones(2, 2, dtype=torch.int32), 1, None)", "scale(1, 1, None)",
    "scale(torch.ones(1, 1), 'x', None)", "scale(torch.ones(1, 1), 1)", "scale(x=1)", "pick([4, 5], 1)",
    "pick([4, 5], 2)", "pick([4.5], 0)", "pick('text', 0)", "pick([1], 1 << 70)",
    "describe(torch.float16, torch.device('meta'), [2, 3])", "describe(torch.int8, 'cpu', [1, 1, 1])",
    "describe('float', torch.device('cpu'), [2])", "describe(torch.int8, torch.device('cpu'), [-1])",
    "scale.__doc__", "pick.__doc__", "describe.__doc__",
]
SESSION = """
import importlib.machinery, importlib.util, json, sys, torch
name, library, *calls = sys.argv[1:]
loader = importlib.machinery.ExtensionFileLoader(name, library)
module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, library, loader=loader))
loader.exec_module(module)

def outcome(call):
    try:
        return repr(eval(call, {"torch": torch, **vars(module)}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps([outcome(call) for call in calls]))
"""


class _Recorded(Exception):
    """Ends a solution's import or construction, with the request that it made."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__()
        self.facts = facts


def request_of(name: str) -> BuildRequest:
    """Returns the build request of a bundled solution, made at its import or construction."""
    import torch.utils.cpp_extension as extension

    def record(facts: dict[str, Any]) -> str:
        raise _Recorded(facts)

    problem = runpy.run_path(str(ROOT / "problems" / f"{name.partition('/')[0]}.py"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "load_inline", _Loader(record, extension.load_inline).load_inline)
        try:
            solution = runpy.run_path(str(ROOT / "solutions" / f"{name}.py"))
            solution["ModelNew"](*problem["get_init_inputs"]())
        except _Recorded as recorded:
            return BuildRequest.from_json(recorded.facts)
    raise AssertionError(f"{name} builds nothing")


def built_both_ways(request: BuildRequest, cache: Path, architectures: tuple[str, ...] = ()) -> list[Path]:
    libraries = []
    for full_headers, headers in ((False, "slim"), (True, "full")):
        target = target_for(kind_of("cuda" if architectures else "cpu"), architectures)
        service = BuildService(cache, target, BuildSettings(600, full_headers=full_headers))
        outcome = service.build(request)
        service.close()
        assert (outcome.reason, outcome.headers) == ("", headers), outcome.log
        assert outcome.library is not None
        libraries.append(outcome.library)
    assert libraries[0] != libraries[1]
    return libraries


def strong_symbols(library: Path) -> list[str]:
    """Returns the functions, data and constants that a library defines. Weak symbols and those of a statically linked
    C++ runtime are left out, because they depend on inlining and on the system."""
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    symbols = [line.split()[-2:] for line in listed.stdout.splitlines()]
    return sorted(f"{kind} {name}" for kind, name in symbols if kind in "TDBR" and name not in runtime_symbols())


@functools.cache
def runtime_symbols() -> frozenset[str]:
    """Returns the names that the C++ runtime's static library defines, if it exists."""
    archive = Path(subprocess.run([toolchain.cxx(), "-print-file-name=libstdc++.a"], capture_output=True, text=True,
                                  check=True).stdout.strip())
    if not archive.is_absolute():
        return frozenset()
    listed = subprocess.run(["nm", "--defined-only", str(archive)], capture_output=True, text=True, check=True)
    return frozenset(line.split()[-1] for line in listed.stdout.splitlines() if len(line.split()) == 3)


def outcomes(request: BuildRequest, library: Path, calls: list[str]) -> list[str]:
    """Returns the results of calls, or the exceptions that they raise, in a separate process."""
    done = subprocess.run([sys.executable, "-c", SESSION, request.name, str(library), *calls], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def wrong_calls(request: BuildRequest) -> list[str]:
    """Returns calls of every function with wrong arguments, and expressions for the docstrings."""
    assert request.functions
    return [call for name in request.functions for call in (f"{name}()", f"{name}('text')", f"{name}(*range(20))",
                                                            f"{name}.__doc__")]


FEW = r"""
torch::Tensor few(const torch::Tensor& x) {
  const c10::OptionalDeviceGuard guard(device_of(x));
  TORCH_CHECK(!at::globalContext().deterministicAlgorithms(), "few: not while algorithms are deterministic");
  return torch::zeros({2}, torch::dtype(torch::kDouble).requires_grad(true)) + x;
}
"""


def test_rarely_used_headers_are_included_for_the_words_in_a_source(cache: Path) -> None:
    request = BuildRequest("few", (FEW,), functions={"few": "few"})
    service = BuildService(cache, CpuTarget(), BuildSettings(600))
    outcome = service.build(request)
    service.close()
    assert (outcome.reason, outcome.headers) == ("", "slim"), outcome.log
    assert outcome.library is not None
    found = outcomes(request, outcome.library, ["few(torch.ones(2)).requires_grad", "few(torch.ones(2)).tolist()"])
    assert found == ["True", "[1.0, 1.0]"]


def test_rarely_used_headers_are_not_included_in_other_sources() -> None:
    include_dir = toolchain.torch().include_dirs[0]
    assert further_headers(["at::Tensor f(at::Tensor x) { return at::relu(x); }"], include_dir) == ["ATen/ops/relu.h"]
    for word in ("device_of(x)", "at::globalContext()", "options.requires_grad(true)"):
        assert any(name.startswith("inlinebench/") for name in further_headers(["int x;", word], include_dir)), word
    assert further_headers(["my_device_of_x = requires_gradient;"], include_dir) == []


def test_bindings_are_the_same_with_slim_and_full_headers(cache: Path) -> None:
    request = BuildRequest("bindings", (BINDINGS,), functions={name: name for name in ("scale", "pick", "describe")})
    slim, full = built_both_ways(request, cache)
    assert strong_symbols(slim) == strong_symbols(full)
    assert {"D exported_value", "R exported_text", "T PyInit_bindings"} <= set(strong_symbols(slim))
    found = outcomes(request, slim, CALLS)
    assert found == outcomes(request, full, CALLS)
    kinds = [text.partition(":")[0] for text in found]
    assert {"TypeError", "RuntimeError", "IndexError", "NotImplementedError"} < set(kinds)
    assert "incompatible function arguments" in found[CALLS.index("scale(1, 1, None)")]
    assert found[CALLS.index("pick([4, 5], 2)")] == "IndexError: pick: no value 2"


def test_a_bundled_solution_is_the_same_with_slim_and_full_headers_on_the_cpu(cache: Path) -> None:
    request = request_of("matmul_diag/naive")
    slim, full = built_both_ways(request, cache)
    assert strong_symbols(slim) == strong_symbols(full) != []
    found = outcomes(request, slim, wrong_calls(request))
    assert found == outcomes(request, full, wrong_calls(request))
    assert found[0].startswith("TypeError: ")


@pytest.mark.gpu
@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_solution_is_the_same_with_slim_and_full_headers_on_a_gpu(name: str, cache: Path) -> None:
    request = request_of(name)
    slim, full = built_both_ways(request, cache, (driver.ask(0),))
    assert strong_symbols(slim) == strong_symbols(full) != []
    assert outcomes(request, slim, wrong_calls(request)) == outcomes(request, full, wrong_calls(request))


def test_slim_headers_have_all_conversions_of_arguments(tmp_path: Path) -> None:
    """A type without its caster compiles, but calls with it fail."""
    torch = toolchain.torch()
    source = tmp_path / "main.cpp"
    source.write_text("#include <torch/extension.h>\n")

    def headers(*first: Path) -> set[Path]:
        folders = (*first, *torch.include_dirs, Path(sysconfig.get_path("include")))
        flags = [flag for folder in folders for flag in ("-isystem", str(folder))]
        listed = subprocess.run([toolchain.cxx(), torch.cxx_standard, "-M", *flags, str(source)], capture_output=True,
                                text=True, check=True).stdout
        return {Path(word) for word in listed.replace("\\\n", " ").split()[2:]}

    def with_casters(found: set[Path]) -> set[Path]:
        return {path for path in found if "type_caster<" in path.read_text(errors="replace")}

    full, slim = headers(), headers(SLIM_DIR)
    assert len(slim) < len(full) / 2
    assert with_casters(full) and with_casters(full) <= slim
