from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuda_on_cpu
from inlinebench.builds.request import BuildRequest
from inlinebench.compile import recipe as recipes
from inlinebench.compile import toolchain
from inlinebench.compile.ninja_syntax import PLACES, Steps
from inlinebench.compile.target import CannotTranslate
from inlinebench.compile.toolchain import MissingTool
from inlinebench.devices.cpu.recipe import cpu_recipe
from inlinebench.devices.cuda.recipe import clock_recipe, recipe

REQUEST = BuildRequest("extension", ("int f();",), functions={"f": "doc"})


def arguments_of(request: BuildRequest, folder: Path) -> list[str]:
    """Returns the arguments that a compiler gets: the real shell splits ninja's real command."""
    folder.mkdir(parents=True, exist_ok=True)
    planned = recipe(request, (), slim=False)
    for name, text in planned.files.items():
        (folder / name).write_text(text)
    listed = subprocess.run([toolchain.ninja(), "-C", str(folder), "-t", "commands", "main.o"],
                            capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    show = f"{sys.executable} -c 'import sys, json; print(json.dumps(sys.argv[1:]))'"
    command = listed.replace(toolchain.cxx(), show, 1)
    import json

    return list(json.loads(subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout))


@pytest.mark.parametrize(("flag", "expected"), [
    ("-DPLAIN", ["-DPLAIN"]),
    ("-O3 -Wall", ["-O3", "-Wall"]),
    ('-DTEXT="two words"', ["-DTEXT=two words"]),
    (r"-DQUOTED=\"text\"", ['-DQUOTED="text"']),
    ("'-DSINGLE=a b'", ["-DSINGLE=a b"]),
    ("-DDOLLAR='$HOME $in'", ["-DDOLLAR=$HOME $in"]),
    ("'-DSEMICOLON=a;touch x'", ["-DSEMICOLON=a;touch x"]),
    ("-DCOLON=a:b|c&d`e`", ["-DCOLON=a:b|c&d`e`"]),
    ("", []),
])
def test_flags_are_split_as_by_a_shell(flag: str, expected: list[str], tmp_path: Path) -> None:
    before = arguments_of(REQUEST, tmp_path / "before")
    after = arguments_of(BuildRequest(**{**vars(REQUEST), "extra_cflags": (flag,)}), tmp_path / "after")
    assert [argument for argument in after if argument not in before] == expected


@settings(max_examples=15)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20))
def test_any_include_path_reaches_the_compiler(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    request = BuildRequest(**{**vars(REQUEST), "extra_include_paths": (path,)})
    assert f"-I{path}" in arguments_of(request, tmp_path_factory.mktemp("recipe"))


@pytest.mark.parametrize("flags", [("-DX='",), ("-DX='a\nb'",)])
def test_flags_that_a_ninja_file_cannot_contain_raise(flags: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="-DX"):
        recipe(BuildRequest("extension", ("int f();",), extra_cflags=flags), (), slim=False)


@pytest.mark.parametrize("change", [
    {"name": "other"}, {"cpp_sources": ("int f() ;",)}, {"functions": None}, {"functions": {"f": "other"}},
    {"extra_cflags": ("-O1",)}, {"extra_ldflags": ("-lm",)}, {"extra_include_paths": ("/include",)},
    {"with_pytorch_error_handling": False}, {"no_implicit_headers": True}, {"cpp_sources": ("int f();", "")},
])
def test_the_key_depends_on_each_part_of_the_request(change: dict[str, Any]) -> None:
    changed = BuildRequest(**{**vars(REQUEST), **change})
    assert recipe(changed, (), slim=False).key != recipe(REQUEST, (), slim=False).key


def test_equal_requests_have_equal_keys() -> None:
    assert recipe(BuildRequest(**vars(REQUEST)), (), slim=False).key == recipe(REQUEST, (), slim=False).key


def test_the_key_depends_on_the_compilers_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe(REQUEST, (), slim=False).key
    monkeypatch.setattr(toolchain, "version_of", lambda compiler: "another version")
    assert recipe(REQUEST, (), slim=False).key != before


def test_the_source_is_assembled_as_by_load_inline() -> None:
    text = recipe(REQUEST, (), slim=False).files["main.cpp"]
    assert text.startswith("#include <torch/extension.h>\n")
    assert 'm.def("f", torch::wrap_pybind_function(f), "doc");' in text
    plain = recipe(BuildRequest("extension", ("int f();",), functions={"f": 'a "doc"\n'}, no_implicit_headers=True,
                                with_pytorch_error_handling=False), (), slim=False).files["main.cpp"]
    assert "#include" not in plain
    assert r'm.def("f", f, "a \"doc\"\n");' in plain


def test_without_functions_no_module_is_generated() -> None:
    assert "PYBIND11_MODULE" not in recipe(BuildRequest("extension", ("int f();",)), (), slim=False).files["main.cpp"]


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CUDA toolkit that contains only a file named nvcc."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").write_text("#!/bin/sh\necho release 13.0\n")
    (tmp_path / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    toolchain.cuda_home.cache_clear()
    return tmp_path


@pytest.fixture(autouse=True)
def forget_tools() -> Any:
    yield
    toolchain.cuda_home.cache_clear()


def nvcc_line(request: BuildRequest, architectures: tuple[str, ...]) -> str:
    lines = recipe(request, architectures, slim=False).files["build.ninja"].splitlines()
    return next(line for line in lines if "$nvcc" in line)


def test_cuda_sources_are_compiled_for_the_given_architecture(toolkit: Path) -> None:
    request = BuildRequest("extension", ("int f();",), ("__global__ void k() {}",))
    line = nvcc_line(request, ("90",))
    assert "arch=compute_90,code=sm_90" in line and "arch=compute_90,code=compute_90" in line
    assert recipe(request, ("90",), slim=False).key != recipe(request, ("80",), slim=False).key


@pytest.mark.parametrize("flag", ["-arch=sm_80", "-gencode=arch=compute_80,code=sm_80"])
def test_a_solutions_own_architecture_and_standard_are_used(toolkit: Path, flag: str) -> None:
    request = BuildRequest("extension", (), ("",), extra_cuda_cflags=(flag, "-std=c++20"))
    line = nvcc_line(request, ("90",))
    assert "compute_90" not in line and line.count("-std=") == 1


def test_several_architectures_and_ptx_for_newer_gpus(toolkit: Path) -> None:
    line = nvcc_line(BuildRequest("extension", (), ("",)), ("80", "90a"))
    targets = re.findall(r"-gencode=arch=compute_(\w+),code=(\w+)", line)
    assert targets == [("80", "sm_80"), ("90a", "sm_90a"), ("80", "compute_80")]


@pytest.mark.parametrize("flags", [("-arch=native",), ("-arch", "native"), ("--gpu-architecture=native -O2",)])
def test_the_native_architecture_is_replaced_by_the_given_one(toolkit: Path, flags: tuple[str, ...]) -> None:
    """A compiler that sees no GPU would use its default."""
    line = nvcc_line(BuildRequest("extension", (), ("",), extra_cuda_cflags=flags), ("90",))
    assert "native" not in line and "-arch" not in line and "code=sm_90" in line


@pytest.mark.parametrize(("own", "found"), [
    ((), ["--threads=2"]), (("-t 4",), ["-t"]), (("--threads=5",), ["--threads=5"]),
    (("-arch=sm_90",), ["--threads=1"]),
    (tuple(f"-gencode=arch=compute_{name}" for name in ("80,code=sm_80", "80,code=compute_80", "89,code=sm_89",
                                                        "90a,code=sm_90a")), ["--threads=3"]),
])
def test_nvcc_compiles_architectures_in_parallel(toolkit: Path, own: tuple[str, ...], found: list[str]) -> None:
    line = nvcc_line(BuildRequest("extension", (), ("",), extra_cuda_cflags=own), ("80", "90"))
    assert [word for word in line.split() if word.startswith(("-t", "--threads"))] == found


# Locations that differ between machines are not part of a key.


def moved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves compilers, toolkit, torch and the harness's headers to another folder."""
    facts = vars(toolchain.torch())
    toolchain.cuda_home.cache_clear()
    monkeypatch.setattr(toolchain, "torch", lambda: toolchain.Torch(**{**facts, "root": folder / "torch"}))
    (folder / "torch").symlink_to(facts["root"])
    (folder / "slim").symlink_to(recipes.SLIM_DIR)
    monkeypatch.setattr(recipes, "SLIM_DIR", folder / "slim")
    (folder / "g++").write_text('#!/bin/sh\necho "g++ of a test"\n')
    (folder / "g++").chmod(0o755)
    monkeypatch.setattr(toolchain, "cxx", lambda: str(folder / "g++"))
    (folder / "bin").mkdir()
    (folder / "bin" / "nvcc").write_text("#!/bin/sh\necho release 13.0\n")
    (folder / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(folder))


def test_keys_do_not_depend_on_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = BuildRequest("extension", ("int f();",), ("__global__ void k() {}",))
    clock = tmp_path / "clock.cu"
    clock.write_text("int x;")
    found, places = [], []
    for name in ("here", "there $x 'y'"):
        folder = tmp_path / name
        folder.mkdir()
        moved(folder, monkeypatch)
        planned = [recipe(request, ("90",), slim=True), clock_recipe(clock, ("90",)),
                   cpu_recipe(request, folder / "runtime.so", slim=True)]
        places.append([each.files[PLACES] for each in planned])
        found.append([(each.key, {**each.files, PLACES: ""}) for each in planned])
    assert found[0] == found[1]
    assert all(here != there for here, there in zip(*places, strict=True))


def key_with(headers: Path) -> str:
    """Returns the key of a recipe that depends on a folder of headers."""
    return recipes.finished("x.so", {}, Steps(), {}, compilers=[], headers=(headers,)).key


def test_keys_depend_on_flags_in_the_environment_and_on_the_harnesss_headers(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recipe(REQUEST, (), slim=True).key
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-O1")
    flagged = recipe(REQUEST, (), slim=True).key
    (tmp_path / "slim").mkdir()
    (tmp_path / "slim" / "extension.h").write_text("// other\n")
    assert key_with(recipes.SLIM_DIR) != key_with(tmp_path / "slim")
    assert flagged != before


@pytest.mark.parametrize("name", ["cuda_on_cpu/math.h", "cub/cub.cuh", "cuda/functional"])
def test_keys_depend_on_every_header_of_the_emulation(name: str, tmp_path: Path) -> None:
    headers = shutil.copytree(cuda_on_cpu.INCLUDE_DIR, tmp_path / "include")
    before = key_with(headers)
    with (headers / name).open("a") as header:
        header.write("// other\n")
    recipes.headers_of.cache_clear()  # as in another process
    assert key_with(headers) != before


def test_only_native_builds_have_keys_that_depend_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    native = BuildRequest(**{**vars(REQUEST), "extra_cflags": ("-march=native",)})
    before = [recipe(request, (), slim=True).key for request in (REQUEST, native)]
    monkeypatch.setattr(toolchain, "processor", lambda: "another")
    after = [recipe(request, (), slim=True).key for request in (REQUEST, native)]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_a_missing_nvcc_raises_with_an_instruction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    toolchain.cuda_home.cache_clear()
    with pytest.raises(MissingTool, match=r"nowhere.*install the CUDA toolkit"):
        recipe(BuildRequest("extension", (), ("",)), ("90",), slim=False)


@pytest.mark.parametrize("make", [lambda request: recipe(request, (), slim=True),
                                  lambda request: cpu_recipe(request, None, slim=True)])
def test_headers_in_a_request_are_written_and_part_of_the_key(make: Any) -> None:
    plans = [make(BuildRequest(**{**vars(REQUEST), "headers": {"own/a.h": text}})) for text in ("one", "other")]
    assert [plan.files["own/a.h"] for plan in plans] == ["one", "other"]
    assert len({plan.key for plan in plans} | {make(REQUEST).key}) == 3


def with_header(name: str, text: str) -> BuildRequest:
    """Returns a request with CUDA sources that includes a header, as it leaves the candidate."""
    return BuildRequest("extension", (), ("int f();",), headers={name: f'#line 1 "/home/me/common/{name}"\n{text}'})


@pytest.mark.parametrize(("name", "translated"), [("own/a.cuh", True), ("own/a.cu", True), ("own/a.h", False)])
def test_headers_of_cuda_are_translated_for_the_cpu(name: str, translated: bool) -> None:
    request = with_header(name, "__global__ void k();\ninline void f() { k<<<1, 2>>>(); }\n")
    written = cpu_recipe(request, Path("runtime.so"), slim=True).files[name]
    assert ("<<<" not in written) is translated
    assert written.count("\n") == request.headers[name].count("\n")


def test_a_header_that_cannot_run_on_the_cpu_is_named_with_its_line() -> None:
    request = with_header("own/a.cuh", "int x;\nCUtensorMap map;\n")
    with pytest.raises(CannotTranslate, match=r"CUtensorMap \(a\.cuh, line 2\)"):
        cpu_recipe(request, Path("runtime.so"), slim=True)
