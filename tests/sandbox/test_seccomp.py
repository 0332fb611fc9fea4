"""The system call filter is for x86-64 only."""

from __future__ import annotations

import platform

import pytest

from inlinebench.sandbox import seccomp
from inlinebench.sandbox.policy import Protection
from inlinebench.sandbox.self_test import available


def test_another_machine_lacks_the_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(OSError, match="has the system calls of x86_64, not aarch64"):
        seccomp.install(())
    assert Protection.SYSTEM_CALLS not in available()
