from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.builds.request import BadRequest, BuildOutcome, BuildRequest

_texts = st.lists(st.text(), max_size=3).map(tuple)
requests = st.builds(
    BuildRequest,
    name=st.sampled_from(["extension", "_private", "größe"]),
    cpp_sources=_texts, cuda_sources=_texts, functions=st.none() | st.dictionaries(st.text(), st.text(), max_size=3),
    extra_cflags=_texts, extra_cuda_cflags=_texts, extra_ldflags=_texts, extra_include_paths=_texts,
    with_cuda=st.none() | st.booleans(), is_python_module=st.booleans(),
    with_pytorch_error_handling=st.booleans(), no_implicit_headers=st.booleans(),
    headers=st.dictionaries(st.sampled_from(["own/a.h", "own/b/c.cuh"]), st.text()),
)


@given(requests)
def test_a_request_survives_the_round_trip(request: BuildRequest) -> None:
    assert BuildRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


@pytest.mark.parametrize("name", ["", "a b", "a-b", "../escape", "a;b", "1a", "a\n"])
def test_a_name_that_is_not_an_identifier_is_rejected(name: str) -> None:
    with pytest.raises(BadRequest, match="not an identifier"):
        BuildRequest(name)


@pytest.mark.parametrize("name", [
    "", "a.h", "./build.ninja", "/etc/passwd", "../a.h", "own/../../a.h", "own/..", "own/a\0",
])
def test_a_header_outside_the_build_folders_is_rejected(name: str) -> None:
    with pytest.raises(BadRequest, match="not in a subfolder"):
        BuildRequest("good", headers={name: ""})


@pytest.mark.parametrize("change", [
    {"headers": ["own/a.h"]}, {"headers": {"own/a.h": 1}},
    {"name": 1}, {"name": "a/b"}, {"cpp_sources": "text"}, {"cpp_sources": [1]}, {"extra_cflags": None},
    {"functions": ["f"]}, {"functions": {"f": 1}}, {"is_python_module": 1}, {"with_cuda": "yes"}, {"command": "rm"},
    {"readable": ["/"]},
])
def test_a_malformed_request_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        BuildRequest.from_json({**BuildRequest("good").to_json(), **change})


def test_a_request_with_a_missing_field_is_rejected() -> None:
    whole = BuildRequest("good").to_json()
    for name in whole:
        with pytest.raises(BadRequest):
            BuildRequest.from_json({key: value for key, value in whole.items() if key != name})


@pytest.mark.parametrize(("facts", "uses"), [
    ({}, False), ({"cuda_sources": ("x",)}, True), ({"with_cuda": True}, True), ({"with_cuda": False}, False),
])
def test_cuda_sources_or_with_cuda_mean_that_a_request_uses_cuda(facts: dict[str, Any], uses: bool) -> None:
    assert BuildRequest("name", **facts).uses_cuda is uses


def test_an_outcome_has_a_library_or_a_reason() -> None:
    BuildOutcome(Path("x.so"))
    BuildOutcome(None, "because")
    for library, reason in ((None, ""), (Path("x.so"), "because")):
        with pytest.raises(ValueError):
            BuildOutcome(library, reason)
