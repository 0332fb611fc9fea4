from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.attribution import LIBRARY, OWN, TRITON
from inlinebench.evaluation.integrity.context import Context
from inlinebench.evaluation.integrity.own_kernels import CHECKS, leaves_work_to_library
from inlinebench.process.replies import ProvenanceReply
from inlinebench.results.result import Verdict
from inlinebench.timing.trace import Activity, Launch, Traced

REFERENCE = {"gemm": 2.68, "scale": 0.02, "normalise": 0.02}


@pytest.mark.parametrize(("library", "leaves"), [
    ({"gemm": 2.68, "scale": 0.02, "normalise": 0.02}, True),   # all kernels of the reference ran
    ({"gemm": 2.68}, False),                                    # own kernels replace the smaller ones
    ({"gemm": 2.68, "scale": 0.02}, True),                      # own kernels replace only 0.7 %
    ({"another gemm": 2.5}, False),                             # a library kernel that the reference does not run
    ({}, False),
])
def test_own_kernels_that_take_no_time_must_replace_kernels_of_the_reference(
    library: dict[str, float], leaves: bool
) -> None:
    assert leaves_work_to_library(library, REFERENCE) is leaves


EMPTY: list[Activity] = []
FFI = "/lib/x86_64-linux-gnu/libffi.so.8"


def profile(*names: str) -> list[Activity]:
    """Returns the activities of a call that runs kernels of these names for 1 µs each."""
    work = [Activity(name, 10.0 + number, 11.0 + number) for number, name in enumerate(names)]
    return [Activity("inlinebench_block", 0.0, 10.0), *work, Activity("inlinebench_stop", 100.0, 101.0)]


class Candidate:
    """Stands in for a candidate: gives one profile after the other, the last one again, and reports `provenance`."""

    def __init__(
        self, *profiles: list[Activity], built: Sequence[Path] = (), provenance: ProvenanceReply | None = None,
        reference: list[Activity] | None = None, allow_library: bool = False,
    ) -> None:
        self._profiles, self._built, self._allow_library = profiles, built, allow_library
        self._provenance = provenance or ProvenanceReply()
        self._reference = profile("gemm") if reference is None else reference
        self.traced: list[Traced] = []
        self.notes: set[str] = set()

    def _trace(self, what: Traced) -> list[Activity]:
        number = self.traced.count("activities")
        self.traced.append(what)
        return self._profiles[min(number, len(self._profiles) - 1)] if what == "activities" else []

    def check(self) -> dict[str, str]:
        """Checks the kernels of a run. Returns the origins of the kernels by their names. Raises Failed."""
        requests: Any = SimpleNamespace(libraries=self._built, provenance=lambda: self._provenance)
        workload: Any = SimpleNamespace(device=torch.device("cuda"), computes_nothing=False)
        reference: Any = SimpleNamespace(profile=lambda tracer: self._reference)
        unused: Any = None
        context = Context(workload, requests, reference, unused, self._trace, self._allow_library, lambda text: None)
        findings = [check(context) for check in CHECKS]
        for finding in findings:
            if finding.verdict is not None:
                raise Failed(finding.verdict, finding.reason)
        self.notes = {finding.note for finding in findings if finding.note}
        return {share.name: share.origin for finding in findings if finding.kernels for share in finding.kernels.top}


def rejection(candidate: Candidate) -> str:
    with pytest.raises(Failed) as failure:
        candidate.check()
    of_a_library = "--allow-library" in failure.value.reason
    assert failure.value.verdict is (Verdict.NO_OWN_KERNEL if of_a_library else Verdict.REJECTED)
    return failure.value.reason


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "own.so"
    path.write_bytes(b"\x7fELF\0rows\0")
    return path


def test_a_solution_with_a_built_kernel_passes_after_one_profiled_call(library: Path) -> None:
    candidate = Candidate(profile("rows"), built=[library])
    assert candidate.check() == {"rows": OWN}
    assert candidate.traced == ["activities"]


def test_an_empty_profile_is_tried_again(library: Path) -> None:
    candidate = Candidate(EMPTY, EMPTY, profile("rows"), built=[library])
    assert candidate.check() == {"rows": OWN} and not candidate.notes
    assert candidate.traced == ["activities"] * 3


@pytest.mark.parametrize("empty", [EMPTY, [Activity("rows", 10.0, 11.0)]])
def test_profiles_that_stay_empty_fail(library: Path, empty: list[Activity]) -> None:
    candidate = Candidate(empty, built=[library])
    reason = rejection(candidate)
    assert "the profiler recorded none" in reason and "remove what uses CUPTI" in reason
    assert candidate.traced == ["activities"] * 3


@pytest.mark.parametrize(("options", "note"), [
    ({"provenance": ProvenanceReply(profiles_itself=True)}, "uses a profiler itself"),
    ({"reference": EMPTY}, "recorded none"),  # the judge's profiles are empty, too
    ({"allow_library": True}, "recorded none"),
])
def test_profiles_that_stay_empty_for_another_reason_are_noted(options: dict[str, Any], note: str) -> None:
    candidate = Candidate(EMPTY, **options)
    assert candidate.check() == {}
    assert len(candidate.notes) == 1 and note in candidate.notes.pop()


def test_library_kernels_alone_fail_after_a_look_at_what_launches_them() -> None:
    launches = (Launch("gemm", "/lib/libcublas.so.13"),)
    candidate = Candidate(profile("gemm"), provenance=ProvenanceReply(frozenset({"unused"}), launches))
    assert "no kernel of its own ran" in rejection(candidate)
    assert candidate.traced == ["activities", "launches"]


@pytest.mark.parametrize(("provenance", "origin"), [
    (ProvenanceReply(triton=frozenset({"rows"})), TRITON), (ProvenanceReply(launches=(Launch("rows", FFI),)), OWN),
])
def test_a_kernel_compiled_at_run_time_passes(provenance: ProvenanceReply, origin: str) -> None:
    assert Candidate(profile("gemm", "rows"), provenance=provenance).check() == {"gemm": LIBRARY, "rows": origin}


def test_a_pass_without_a_kernel_of_its_own_is_remarked_on_and_may_be_honest(library: Path) -> None:
    def with_passes(*names: str) -> list[Activity]:
        block, forward, backward, stop = profile(*names)
        return [block, forward, Activity("inlinebench_null", forward.end_us, backward.begin_us), backward, stop]

    for names, notes in ((("rows", "rows"), set()), (("rows", "gemm"), {"no kernel of its own ran in the backward"}),
                         (("gemm", "rows"), {"no kernel of its own ran in the forward"})):
        candidate = Candidate(with_passes(*names), built=[library])
        candidate.check()
        assert candidate.notes == notes
