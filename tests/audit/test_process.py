"""A problem that crashes or hangs costs only its own findings, and the command's output and exit status say what was
found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.audit.process import Auditor
from inlinebench.audit.records import Audit, Flaw
from inlinebench.audit.text import summary, text_of
from inlinebench.errors import NoDevice
from inlinebench.messages import ProblemAt

from ..running import ROOT
from .examples import HONEST, PLANTED, Example

CRASHES = Example("import os\nos._exit(7)")
HANGS = Example("while True:\n    pass")
CRASHES_LATE = Example(
    "import os\nif self.calls > 60:\n    os._exit(7)\nself.calls += 1\nreturn torch.relu(torch.sigmoid(x))",
    init="Model.calls = 0\nModel.__setattr__ = lambda self, name, value: "
         "setattr(Model, name, value) if name == 'calls' else nn.Module.__setattr__(self, name, value)")


@pytest.fixture(scope="module")
def auditor() -> Iterator[Auditor]:
    with Auditor("cpu", 120.0) as found:
        yield found


def audited(auditor: Auditor, folder: Path, example: Example) -> Audit:
    return auditor.audit("it", "full", ProblemAt(example.write(folder / "it.py"), "full", {}))


def test_a_crash_is_a_fault_and_the_next_problem_is_audited(auditor: Auditor, tmp_path: Path) -> None:
    found = audited(auditor, tmp_path, CRASHES)
    assert [each.name for each in found.faults] == ["does not run"] and "exit status 7" in found.faults[0].text
    assert audited(auditor, tmp_path, HONEST["relu"]).findings == ()
    twice = audited(auditor, tmp_path, PLANTED["relu_twice"])
    assert [each.name for each in twice.faults] == ["redundant operator"] * 2


def test_what_was_found_before_a_crash_is_kept(auditor: Auditor, tmp_path: Path) -> None:
    found = audited(auditor, tmp_path, CRASHES_LATE)
    assert found.faults == ()
    [left] = [each for each in found.findings if each.name == "not checked"]
    assert "exit status 7" in left.text


def test_a_problem_that_hangs_is_stopped(tmp_path: Path) -> None:
    with Auditor("cpu", 1.5) as auditor:
        found = audited(auditor, tmp_path, HANGS)
    assert [each.name for each in found.faults] == ["does not run"] and "within 1.5 s" in found.faults[0].text


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "inlinebench.cli.main", "audit", "--device", "cpu", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300)


def test_only_a_fault_makes_the_exit_status_1(tmp_path: Path) -> None:
    PLANTED["relu_twice"].write(tmp_path / "bad.py")
    HONEST["layer_norm"].write(tmp_path / "good.py")
    (tmp_path / "broken.py").write_text("def (")
    every = command("--problems", tmp_path, "--json")
    bad, broken, good = map(json.loads, every.stdout.splitlines())
    assert every.returncode == 1 and (bad["problem"], bad["faults"]) == ("bad", 2)
    assert [each["name"] for each in broken["findings"]] == ["does not run"] and broken["faults"] == 1
    assert (good["problem"], good["faults"], [each["name"] for each in good["findings"]]) == (
        "good", 0, ["neutral weights"])
    fine = command("--problems", tmp_path, "good")
    assert fine.returncode == 0 and "remark  neutral weights" in fine.stdout
    assert fine.stdout.endswith("1 problem audited: no faults\n")


@pytest.mark.parametrize(("arguments", "said"), [
    (["row_sun"], "did you mean row_sum"), (["row_sum", "--shape", "none"], "declares no such shape"),
    (["--min-calls", "3"], "it is an option of inlinebench run"),
])
def test_unusable_arguments_have_status_2(arguments: list[str], said: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


def test_a_device_that_cannot_be_used_is_no_finding() -> None:
    with pytest.raises(NoDevice, match=r"no CUDA device|cuda:999"):
        Auditor("cuda:999", 10.0)


def test_the_command_does_not_import_torch() -> None:
    code = "import sys, inlinebench.cli.audit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_faults_are_shown_before_remarks() -> None:
    remark, fault = Flaw("odd", False, "a remark"), Flaw("constant output", True, "a fault")
    audit = Audit("name", "small", (remark, fault), 1.0, {"N": 4})
    assert text_of(audit) == (
        "name (small, N=4):\n  FAULT   constant output  a fault\n  remark  odd              a remark")
    assert text_of(Audit("name", "odd", (), 1.0)) == "name (odd): nothing found"
    assert summary([audit, Audit("name", "odd", (), 1.0), Audit("other", "odd", (remark,), 1.0)]) == (
        "2 problems audited: 1 with faults (name)")
