"""Build requests of a candidate: they contain private headers, and no path that differs from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.candidate.files import Files
from inlinebench.candidate.includes import LARGEST_HEADER, OWN, for_build

FOLDER = Path("/home/me/p")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "files" / "home" / "me" / "p"
    folder.mkdir(parents=True)
    return folder


def sent(files: Files, source: str = "", **facts: Any) -> BuildRequest:
    request = BuildRequest("name", (source,)).to_json()
    return BuildRequest.from_json(for_build({**request, **facts}, files))


def test_without_private_headers_the_request_has_the_author_s_folders(files: Files, private: Path) -> None:
    request = sent(files, f'#line 1 "{private}/a.cu"\nint a;', extra_include_paths=[str(private), "/usr/include"],
                   extra_cflags=[f"-I{private}/sub"], extra_ldflags=[f"-L{private}"])
    assert request.cpp_sources == (f'#line 1 "{FOLDER}/a.cu"\nint a;',)
    assert request.extra_include_paths == (str(FOLDER), "/usr/include")
    assert (request.extra_cflags, request.extra_ldflags) == ((f"-I{FOLDER}/sub",), (f"-L{FOLDER}",))
    assert not request.headers


@pytest.mark.parametrize("how", [
    {"extra_include_paths": ["{private}"]}, {"extra_cflags": ["-O2 -I{private}"]},
    {"extra_cuda_cflags": ["-I {private}"]},
])
def test_the_request_contains_included_headers(files: Files, private: Path, how: dict[str, list[str]]) -> None:
    (private / "a.h").write_text('#include "sub/b.h"')
    (private / "sub").mkdir()
    (private / "sub" / "b.h").write_text('#include "c.h"')
    (private / "sub" / "c.h").write_text("int c;")
    (private / "unused.h").write_text("int d;")
    given = {name: [text.format(private=private) for text in texts] for name, texts in how.items()}
    request = sent(files, '#include "a.h"', **given)
    headers = {name: text for name, text in request.headers.items() if text}
    assert headers == {
        f"{OWN}{FOLDER}/a.h": f'#line 1 "{FOLDER}/a.h"\n#include "sub/b.h"',
        f"{OWN}{FOLDER}/sub/b.h": f'#line 1 "{FOLDER}/sub/b.h"\n#include "c.h"',
        f"{OWN}{FOLDER}/sub/c.h": f'#line 1 "{FOLDER}/sub/c.h"\nint c;',
    }
    assert request.extra_include_paths[0] == f"{OWN}{FOLDER}"


def test_the_request_does_not_contain_headers_outside_the_include_path(files: Files, private: Path) -> None:
    (private / "a.h").write_text("int a;")
    assert not sent(files, '#include "a.h"').headers


def test_an_absolute_include_becomes_a_relative_one(files: Files, private: Path) -> None:
    (private / "a.h").write_text("int a;")
    request = sent(files, f'#include "{private}/a.h"\nconst char* path = "{private}/a.h";')
    assert request.cpp_sources == (f'#include "{str(FOLDER)[1:]}/a.h"\nconst char* path = "{private}/a.h";',)
    assert request.extra_include_paths == (OWN,) and f"{OWN}{FOLDER}/a.h" in request.headers


def test_files_in_temporary_folders_give_the_same_request_in_each_process(tmp_path: Path) -> None:
    requests = []
    for name in ("one", "two"):
        scratch = tmp_path / name
        (scratch / "made").mkdir(parents=True)
        (scratch / "made" / "a.h").write_text("int a;")
        source = f'#line 1 "{scratch}/made/a.cu"\n#include "a.h"'
        requests.append(sent(Files(scratch), source, extra_include_paths=[str(scratch / "made")]))
    assert requests[0] == requests[1]
    assert requests[0].extra_include_paths == (f"{OWN}/made", OWN)


def test_a_header_that_is_too_large_is_not_in_the_request(files: Files, private: Path) -> None:
    (private / "a.h").write_text(" " * (LARGEST_HEADER + 1))
    request = sent(files, f'#include "{private}/a.h"', extra_include_paths=[str(private)])
    assert not request.headers and request.cpp_sources == (f'#include "{FOLDER}/a.h"',)
