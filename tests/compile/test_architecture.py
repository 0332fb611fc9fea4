from __future__ import annotations

import pytest

from inlinebench.compile.architecture import for_newer, in_order, runs_on


def test_architectures_are_sorted_by_age_without_duplicates() -> None:
    assert in_order(["120", "90a", "80", "90", "80"]) == ("80", "90", "90a", "120")


@pytest.mark.parametrize(("built", "newer"), [
    (["80"], "80"), (["80", "90"], "90"), (["80", "90a"], "80"), (["90a"], "90a"), (["90a", "100f"], "100f"),
])
def test_ptx_for_newer_gpus_is_of_an_architecture_that_they_can_run(built: list[str], newer: str) -> None:
    assert for_newer(built) == newer


@pytest.mark.parametrize(("built", "present"), [
    ("90", "90"), ("80", "86"), ("80", "90"), ("80", "120"), ("90a", "90"), ("80,90a", "100"), ("100f", "103"),
    ("75,100a", "90"),
])
def test_compatible_builds_run_on_a_gpu(built: str, present: str) -> None:
    assert runs_on(built.split(","), present)


@pytest.mark.parametrize(("built", "present"), [
    ("90", "80"), ("90", "89"), ("90a", "100"), ("90a", "80"), ("100a", "103"), ("100f", "120"), ("103f", "100"),
])
def test_incompatible_builds_do_not_run_on_a_gpu(built: str, present: str) -> None:
    assert not runs_on(built.split(","), present)
