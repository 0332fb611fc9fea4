"""cuBLAS's matrix products on the CPU give torch's results, with the arguments that column-major code passes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.target import CpuTarget

pytestmark = pytest.mark.slow

_SOURCE = Path(__file__).with_name("cublas_calls.cu")
_SUCCESS, _NOT_INITIALIZED, _INVALID_VALUE = 0, 1, 7
_M, _N, _K = 5, 7, 3


@pytest.fixture(scope="module")
def cublas(cache: Path) -> Iterator[Any]:
    """The functions of `cublas_calls.cu`, built with the link flags that solutions give."""
    request = BuildRequest("cublas_calls", (), (_SOURCE.read_text(),), extra_ldflags=("-lcublas -lcudart",))
    service = BuildService(cache, CpuTarget(), BuildSettings(600))
    outcome = service.build(request)
    assert outcome.library is not None, outcome.reason
    spec = importlib.util.spec_from_file_location("cublas_calls", outcome.library)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    service.close()


def column_major(matrix: torch.Tensor, ld: int) -> torch.Tensor:
    """Returns the memory of a column-major matrix whose columns are `ld` elements apart. What lies between is NaN."""
    memory = torch.full((matrix.shape[1], ld), torch.nan, dtype=matrix.dtype)
    memory[:, : matrix.shape[0]] = matrix.T
    return memory


@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.5, 1.0), (-2.0, 0.25), (0.0, 2.0)])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(("routine", "dtype"), [("sgemm", torch.float32), ("dgemm", torch.float64),
                                                ("mixed", torch.float16), ("mixed", torch.bfloat16)])
def test_a_product_is_torchs(
    cublas: Any, *, routine: str, dtype: torch.dtype, ta: bool, tb: bool, alpha: float, beta: float, padding: int
) -> None:
    a, b, c = (torch.randn(shape, dtype=dtype) for shape in ((_M, _K), (_K, _N), (_M, _N)))
    if beta == 0:
        c.fill_(torch.nan)  # is not read
    stored_a, stored_b = a.T if ta else a, b.T if tb else b
    lda, ldb, ldc = stored_a.shape[0] + padding, stored_b.shape[0] + padding, _M + padding
    memory = column_major(c, ldc)
    further = (0, 0, 0, 0) if routine == "mixed" else ()
    status = getattr(cublas, routine)(ta, tb, _M, _N, _K, alpha, column_major(stored_a, lda), lda,
                                      column_major(stored_b, ldb), ldb, beta, memory, ldc, *further)
    assert status == _SUCCESS
    expected = alpha * (a.double() @ b.double()) + (beta * c.double() if beta else 0)
    torch.testing.assert_close(memory[:, :_M].T, expected.to(dtype))
    assert torch.isnan(memory[:, _M:]).all(), "what lies between the columns was written"


@pytest.mark.parametrize(("routine", "dtype"), [("batched", torch.float32), ("mixed", torch.bfloat16)])
def test_a_batch_is_read_and_written_at_its_strides(cublas: Any, routine: str, dtype: torch.dtype) -> None:
    """The way row-major code calls it: with the operands exchanged, C^T = B^T A^T."""
    a, b = torch.randn(4, _M, _K, dtype=dtype), torch.randn(1, _K, _N, dtype=dtype)
    c = torch.full((4, _M, _N), torch.nan, dtype=dtype)
    status = getattr(cublas, routine)(False, False, _N, _M, _K, 1.0, b, _N, a, _K, 0.0, c, _N, 4, 0, _M * _K, _M * _N)
    assert status == _SUCCESS
    torch.testing.assert_close(c, (a.double() @ b.double()).to(dtype))


def test_an_outer_product_is_added(cublas: Any) -> None:
    x, y = torch.randn(10)[::2], torch.randn(4)
    torch.testing.assert_close(cublas.outer(x, y, 2.0), 1 + 2 * torch.outer(y, x))


@pytest.mark.parametrize(("lda", "ldb", "ldc", "parameter"), [(_M - 1, _K, _M, 8), (_M, _K - 1, _M, 10),
                                                              (_M, _K, _M - 1, 13)])
def test_a_leading_dimension_that_is_too_small_is_refused(
    cublas: Any, *, lda: int, ldb: int, ldc: int, parameter: int, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b, c = torch.ones(_M * _K), torch.ones(_K * _N), torch.zeros(_M * _N)
    status = cublas.sgemm(False, False, _M, _N, _K, 1.0, a, lda, b, ldb, 0.0, c, ldc)
    assert status == _INVALID_VALUE and not c.any()
    assert f"On entry to cublasSgemm parameter number {parameter} had an illegal value" in capfd.readouterr().err


def test_a_handle_that_was_not_created_is_refused(cublas: Any) -> None:
    assert cublas.without_handle() == _NOT_INITIALIZED
