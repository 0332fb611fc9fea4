"""What the shim makes of a solution's call, without a build. That its libraries work is shown by the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension

from harness.build.request import BuildRequest
from harness.candidate import load_inline


class NotBuilt(Exception):
    """Ends a call where the build would begin."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Installs the shim for one test; what it asks for lands here."""
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


def test_positional_arguments_mean_what_they_mean_in_torch(asked: list[dict[str, Any]]) -> None:
    request = request_of(asked, "name", "cpp", "cuda", None, ["f"], ["-O1"], ["-O2"], None, ["-lm"], ["/include"])
    assert (request.name, request.cpp_sources, request.cuda_sources) == ("name", ("cpp",), ("cuda",))
    assert (request.functions, request.extra_cflags, request.extra_cuda_cflags) == ({"f": "f"}, ("-O1",), ("-O2",))
    assert (request.extra_ldflags, request.extra_include_paths) == (("-lm",), ("/include",))


@pytest.mark.parametrize(("functions", "expected"), [
    ("f", {"f": "f"}), (["f", "g"], {"f": "f", "g": "g"}), (("f",), {"f": "f"}), ({"f": "doc"}, {"f": "doc"}),
    (None, None), ([], {}),
])
def test_functions_in_all_their_forms(asked: list[dict[str, Any]], functions: Any, expected: Any) -> None:
    assert request_of(asked, name="name", cpp_sources="", functions=functions).functions == expected


def test_functions_of_another_kind_raise_as_in_torch(asked: list[dict[str, Any]]) -> None:
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
def test_the_architectures_that_a_solution_sets_are_built_for(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, listed: str, flags: list[str], expected: list[str]
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", listed)
    request = request_of(asked, name="name", cpp_sources="", cuda_sources="", extra_cuda_cflags=flags)
    assert list(request.extra_cuda_cflags) == expected


def test_an_architecture_that_torch_does_not_know_raises_as_in_torch(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.9")
    with pytest.raises(ValueError, match=r"9\.9"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", cuda_sources="")


def test_a_name_that_is_no_identifier_becomes_one(asked: list[dict[str, Any]]) -> None:
    assert request_of(asked, name="my-kernel.v2", cpp_sources="").name == "my_kernel_v2"


def test_a_name_that_begins_with_a_digit_becomes_an_identifier(asked: list[dict[str, Any]]) -> None:
    assert request_of(asked, name="2d_conv", cpp_sources="").name.isidentifier()


def test_an_unknown_argument_raises_as_in_torch(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", no_such_argument=1)


def test_files_are_read_and_told_apart_by_their_suffix(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a;")
    (tmp_path / "b.cu").write_text("int b;")
    with pytest.raises(NotBuilt):
        torch.utils.cpp_extension.load("name", [str(tmp_path / "a.cpp"), tmp_path / "b.cu"], ["-O1"])
    request = BuildRequest.from_json(asked[-1])
    assert request.cpp_sources == (f'#line 1 "{tmp_path}/a.cpp"\nint a;',)
    assert request.cuda_sources == (f'#line 1 "{tmp_path}/b.cu"\nint b;',)
    assert request.extra_include_paths == (str(tmp_path),), "the files include others beside them"
    assert request.no_implicit_headers and request.functions is None


def test_sycl_is_refused(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(RuntimeError, match="SYCL"):
        torch.utils.cpp_extension.load_inline(name="name", cpp_sources="", sycl_sources="x")


def test_another_source_under_a_name_that_is_taken_gets_a_number_as_in_torch(asked: list[dict[str, Any]]) -> None:
    sources = ["one", "other", "one", "third"]
    names = [request_of(asked, name="kernels", cpp_sources=source).name for source in sources]
    assert names == ["kernels", "kernels_v1", "kernels", "kernels_v2"]
