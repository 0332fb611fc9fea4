from __future__ import annotations

import signal

from inlinebench.process.candidate_process import killed_by


def test_a_signal_is_named() -> None:
    assert killed_by(signal.SIGABRT, has_gpu=True) == "was killed by SIGABRT"
    assert killed_by(200, has_gpu=False) == "was killed by signal 200"


def test_an_invalid_access_is_explained() -> None:
    on_cpu, on_gpu = (killed_by(signal.SIGSEGV, has_gpu=has_gpu) for has_gpu in (False, True))
    assert on_cpu == "was killed by SIGSEGV: it accessed memory that is not its own"
    assert "tensor on the GPU" in on_gpu and "GPU" not in on_cpu
