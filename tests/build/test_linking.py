"""What a linker is given instead of torch's libraries, and when."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.build import toolchain
from harness.build.linking import libraries_place
from harness.build.prefix import PREFIX_DIR, STAND_INS
from harness.build.recipe import recipe
from harness.build.request import BuildRequest
from harness.build.service import BuildService

TORCH = "#include <ATen/ATen.h>\nauto f() { return at::empty({1}); }"
OPEN = 'extern "C" int nobody_has_this(); extern "C" int run() { return nobody_has_this(); }'


def link_line(*flags: str, slim: bool = True) -> str:
    request = BuildRequest("extension", ("int f();",), extra_ldflags=flags)
    lines = recipe(request, (), slim=slim).files["build.ninja"].splitlines()
    return lines[lines.index("rule link") + 1]


def test_who_has_a_say_in_the_linking_gets_torch_s_own() -> None:
    assert "-L$libraries" in link_line()
    for own in (link_line("-lm"), link_line(slim=False)):
        assert "-L$torch/lib" in own and "$libraries" not in own


def test_a_flag_by_which_open_names_are_errors_finds_torch_s_and_no_others(tmp_path: Path) -> None:
    flags = ("-Wl,-z,defs",)
    service = BuildService(tmp_path, (), timeout=600)
    good = service.build(BuildRequest("good", (TORCH,), extra_ldflags=flags, no_implicit_headers=True))
    bad = service.build(BuildRequest("bad", (OPEN,), extra_ldflags=flags, no_implicit_headers=True))
    service.close()
    assert good.library is not None, good.log
    assert bad.library is None and "nobody_has_this" in bad.log


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return Path(shutil.copy(PREFIX_DIR / f"{STAND_INS}.sh", tmp_path))


def made_by(script: Path, compiler: str) -> list[str]:
    library = toolchain.torch().library_dir / "libc10.so"
    subprocess.run(["sh", script, compiler, "", library], check=True)
    return sorted(path.name for path in (script.parent / STAND_INS).glob("*"))


def test_a_linker_that_does_not_tell_what_it_reads_gets_torch_s_own(script: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent-c++"
    silent.write_text('#!/bin/bash\nfor each; do [ "$each" = -Wl,--trace ] || given+=("$each"); done\n'
                      f'exec {toolchain.cxx()} "${{given[@]}}"\n')
    silent.chmod(0o755)
    assert made_by(script, str(silent)) == []
    assert libraries_place(tmp_path) == str(toolchain.torch().library_dir)
    assert made_by(script, toolchain.cxx()) == ["libc10.so"]
    assert libraries_place(tmp_path) == str(tmp_path / STAND_INS)


def test_they_have_the_name_and_what_the_runtime_has_as_well(script: Path) -> None:
    """With a library that has a name of the C++ runtime's and one of its own."""
    source, library = script.parent / "both.cpp", script.parent / "libboth.so"
    source.write_text("#include <new>\nvoid* operator new(std::size_t) { return nullptr; }\nint own() { return 1; }\n")
    subprocess.run([toolchain.cxx(), "-shared", "-fPIC", "-Wl,-soname,libboth.so", source, "-o", library], check=True)
    subprocess.run(["sh", script, toolchain.cxx(), "", library], check=True)
    made = script.parent / STAND_INS / "libboth.so"
    listed = subprocess.run(["nm", "-D", made], capture_output=True, text=True, check=True).stdout.split()
    assert "_Znwm" in listed and "_Z3ownv" not in listed
    assert "[libboth.so]" in subprocess.run(["readelf", "-d", made], capture_output=True, text=True, check=True).stdout
