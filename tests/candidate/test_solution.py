from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.candidate.solution import failure

PYBIND = """scale(): incompatible function arguments. The following argument types are supported:
    1. (arg0: torch.Tensor, arg1: typing.SupportsFloat) -> torch.Tensor

Invoked with: tensor([[ 1.2330, -0.7924],
        [ 0.4302, -0.0903]])
"""


def test_wrong_arguments_of_an_extension_s_function_are_described_with_its_signature() -> None:
    found = failure(TypeError(PYBIND), "exception", Path("s.py"))
    assert str(found) == ("TypeError: scale() is called with arguments that its C++ function does not accept; it "
                          "accepts (arg0: torch.Tensor, arg1: typing.SupportsFloat)")


@pytest.mark.parametrize(("text", "first"), [
    ("no tile fits\nmore", "no tile fits"), ("f(): incompatible function arguments.", "f(): incompatible function arg"),
])
def test_any_other_exception_is_described_by_its_first_line(text: str, first: str) -> None:
    assert str(failure(RuntimeError(text), "exception", Path("s.py"))).startswith(f"RuntimeError: {first}")


@pytest.mark.parametrize(("statement", "said"), [
    ("assert x.is_contiguous()", "AssertionError: assert x.is_contiguous() (s.py, line 2)"),
    ('assert x.is_contiguous(), "not contiguous"', "AssertionError: not contiguous (s.py, line 2)"),
    ("raise RuntimeError", "RuntimeError (s.py, line 2)"),
])
def test_an_assertion_without_a_text_is_described_by_its_line(statement: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(f"def forward(x):\n    {statement}\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(Exception) as caught:
        names["forward"](torch.ones(4, 4).t()[:, :2])
    assert str(failure(caught.value, "exception", path)) == said
