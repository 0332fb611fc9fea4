"""The build requests for calls of `load_inline` and `load`, without builds. The pipeline tests the libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension

from inlinebench.builds.request import BuildRequest
from inlinebench.candidate import load_inline, solution


class NotBuilt(Exception):
    """Ends a call before the build."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replaces `load_inline` and `load` for one test. Returns the list of requests."""
    monkeypatch.setattr(torch.utils.cpp_extension, "load_inline", torch.utils.cpp_extension.load_inline)
    monkeypatch.setattr(torch.utils.cpp_extension, "load", torch.utils.cpp_extension.load)
    requests: list[dict[str, Any]] = []

    def build(facts: dict[str, Any]) -> str:
        requests.append(facts)
        raise NotBuilt

    load_inline.install(build)
    return requests


def request_of(asked: list[dict[str, Any]], *arguments: Any, **named: Any) -> BuildRequest:
    with pytest.raises(NotBuilt):
        torch.utils.cpp_extension.load_inline(*arguments, **named)
    return BuildRequest.from_json(asked[-1])


def test_positional_arguments_have_the_same_order_as_in_pytorch(asked: list[dict[str, Any]]) -> None:
    request = request_of(asked, "name", "cpp", "cuda", None, ["f"], ["-O1"], ["-O2"], None, ["-lm"], ["/include"])
    assert (request.name, request.cpp_sources, request.cuda_sources) == ("name", ("cpp",), ("cuda",))
    assert (request.functions, request.extra_cflags, request.extra_cuda_cflags) == ({"f": "f"}, ("-O1",), ("-O2",))
    assert (request.extra_ldflags, request.extra_include_paths) == (("-lm",), ("/include",))


@pytest.mark.parametrize(("functions", "expected"), [
    ("f", {"f": "f"}), (["f", "g"], {"f": "f", "g": "g"}), (("f",), {"f": "f"}), ({"f": "doc"}, {"f": "doc"}),
    (None, None), ([], {}),
])
def test_all_forms_of_functions(asked: list[dict[str, Any]], functions: Any, expected: Any) -> None:
    assert request_of(asked, name="name", cpp_sources="", functions=functions).functions == expected


def test_functions_of_another_type_raise_as_in_pytorch(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="Expected 'functions'"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", functions=3)


def test_empty_flags_are_dropped(asked: list[dict[str, Any]]) -> None:
    request = request_of(asked, name="name", cpp_sources="", extra_cflags=[""], extra_ldflags=["", " "], verbose=True,
                         extra_cuda_cflags=None, build_directory="/nowhere")
    assert (request.extra_cflags, request.extra_ldflags, request.extra_cuda_cflags) == ((), (), ())


@pytest.mark.parametrize(("listed", "flags", "expected"), [
    ("9.0a", [], ["-gencode=arch=compute_90a,code=sm_90a"]),
    ("8.0;9.0+PTX", ["-O3"], ["-O3", "-gencode=arch=compute_80,code=sm_80",
                              "-gencode=arch=compute_90,code=compute_90", "-gencode=arch=compute_90,code=sm_90"]),
    ("9.0a", ["-arch=sm_80"], ["-arch=sm_80"]), ("native", ["-O3"], ["-O3"]), ("", [], []),
])
def test_flags_for_the_architectures_that_a_solution_sets_are_added(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, listed: str, flags: list[str], expected: list[str]
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", listed)
    request = request_of(asked, name="name", cpp_sources="", cuda_sources="", extra_cuda_cflags=flags)
    assert list(request.extra_cuda_cflags) == expected


def test_an_unknown_architecture_raises_as_in_pytorch(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.9")
    with pytest.raises(ValueError, match=r"9\.9"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", cuda_sources="")


def test_a_name_with_dashes_and_dots_becomes_an_identifier(asked: list[dict[str, Any]]) -> None:
    assert request_of(asked, name="my-kernel.v2", cpp_sources="").name == "my_kernel_v2"


def test_a_name_that_begins_with_a_digit_becomes_an_identifier(asked: list[dict[str, Any]]) -> None:
    assert request_of(asked, name="2d_conv", cpp_sources="").name.isidentifier()


def test_an_unknown_argument_raises_as_in_pytorch(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", no_such_argument=1)


def test_files_are_cpp_or_cuda_sources_by_their_suffix(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a;")
    (tmp_path / "b.cu").write_text("int b;")
    with pytest.raises(NotBuilt):
        torch.utils.cpp_extension.load("name", [str(tmp_path / "a.cpp"), tmp_path / "b.cu"], ["-O1"])
    request = BuildRequest.from_json(asked[-1])
    assert request.cpp_sources == (f'#line 1 "{tmp_path}/a.cpp"\nint a;',)
    assert request.cuda_sources == (f'#line 1 "{tmp_path}/b.cu"\nint b;',)
    assert request.extra_include_paths == (str(tmp_path),), "the files may include others in their folder"
    assert request.no_implicit_headers and request.functions is None


def test_sycl_sources_are_not_supported(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(RuntimeError, match="SYCL"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", sycl_sources="x")


def test_other_sources_under_the_same_name_get_a_number_as_in_pytorch(asked: list[dict[str, Any]]) -> None:
    sources = ["one", "other", "one", "third"]
    names = [request_of(asked, name="kernels", cpp_sources=source).name for source in sources]
    assert names == ["kernels", "kernels_v1", "kernels", "kernels_v2"]


OPEN = """
struct Tensor { int x; };
Tensor add(Tensor a, int b);
extern "C" void *PyInit_open_name() { add({1}, 2); return nullptr; }
"""


@pytest.fixture(scope="module")
def open_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a library that needs an undefined function."""
    library = tmp_path_factory.mktemp("open") / "open_name.so"
    source = library.with_suffix(".cpp")
    source.write_text(OPEN)
    subprocess.run([shutil.which("c++") or "g++", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


@pytest.mark.parametrize("is_python_module", [True, False])
def test_the_error_of_an_undefined_function_has_its_demangled_name(
    open_library: Path, is_python_module: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.utils.cpp_extension, "load_inline", torch.utils.cpp_extension.load_inline)
    monkeypatch.setattr(torch.utils.cpp_extension, "load", torch.utils.cpp_extension.load)
    load_inline.install(lambda facts: str(open_library))
    with pytest.raises(load_inline.NotLinked, match=r"undefined symbol add\(Tensor, int\): it is declared, but"):
        torch.utils.cpp_extension.load_inline("open_name", "", is_python_module=is_python_module)


def test_a_missing_library_raises_the_original_error(tmp_path: Path) -> None:
    with pytest.raises(ImportError) as raised:
        load_inline._linked(str(tmp_path / "a.so"), lambda: load_inline._import("a", str(tmp_path / "a.so")))
    assert not isinstance(raised.value, load_inline.NotLinked)


def test_an_undefined_symbol_is_a_failure_of_the_kind_not_linked(tmp_path: Path) -> None:
    path = tmp_path / "solution.py"
    path.write_text("from inlinebench.candidate.load_inline import NotLinked\nraise NotLinked('undefined symbol f')\n")
    with pytest.raises(solution.UnusableSolution, match=r"^undefined symbol f \(solution.py, line 2\)$") as raised:
        solution.import_class(path, "ModelNew")
    assert raised.value.kind == "not_linked"
