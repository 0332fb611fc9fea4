"""Linking with torch's libraries and the solution's flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.target import CpuTarget

TORCH = "#include <ATen/ATen.h>\nauto f() { return at::empty({1}); }"
OPEN = 'extern "C" int nobody_has_this(); extern "C" int run() { return nobody_has_this(); }'


@pytest.mark.slow
def test_undefined_names_fail_with_z_defs_but_torchs_names_are_found(tmp_path: Path) -> None:
    flags = ("-Wl,-z,defs",)
    service = BuildService(tmp_path, CpuTarget(), BuildSettings(600))
    good = service.build(BuildRequest("good", (TORCH,), extra_ldflags=flags, no_implicit_headers=True))
    bad = service.build(BuildRequest("bad", (OPEN,), extra_ldflags=flags, no_implicit_headers=True))
    service.close()
    assert good.library is not None, good.log
    assert bad.library is None and "nobody_has_this" in bad.log
