"""The imports between the subpackages of `inlinebench`: they have no cycle, and only those listed here are allowed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .running import ROOT

PACKAGE = ROOT / "harness" / "inlinebench"
MOST_MODULES = 16

MAY_USE = {
    "version": "",
    "foreign": "",
    "records": "foreign",
    "wire": "",
    "cuda_on_cpu": "",
    "response": "",
    "sandbox": "wire",
    "timing": "records wire",
    "compare": "records",
    "report": "foreign records",
    "messages": "records sandbox timing",
    "candidate": "cuda_on_cpu sandbox timing wire",
    "process": "candidate records sandbox timing wire",
    "compile": "cuda_on_cpu records sandbox wire",
    "problem": "compare cuda_on_cpu messages process records sandbox timing wire",
    "evaluation": "compare messages problem process records sandbox timing wire",
    "judge": "compare compile evaluation messages problem process records sandbox timing version wire",
    "audit": "compare evaluation foreign judge messages problem records sandbox wire",
    "profiling": "candidate compile judge messages problem records wire",
    "scheduler": "compile foreign messages process profiling records report sandbox timing wire",
    "ray": "messages records report sandbox scheduler version",
    "serve": "foreign messages records report scheduler version wire",
    "api": "records serve",
    "cli": "audit compile foreign ray records report response scheduler version wire",
    "": "api records version",
}
"""The subpackages that each subpackage may import. Top-level modules count as well, and "" is the package itself."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yields the full name and the file of every module."""
    for path in PACKAGE.rglob("*.py"):
        parts = ("inlinebench", *path.relative_to(PACKAGE).with_suffix("").parts)
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


NAMES = dict(modules())


def imports(name: str, path: Path) -> Iterator[str]:
    """Yields the modules of the package that a module imports, at any place in its code."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in NAMES)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                full = f"{source}.{alias.name}"
                if full in NAMES or source in NAMES:
                    yield full if full in NAMES else source


GRAPH = {name: set(imports(name, path)) - {name} for name, path in NAMES.items()}


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def arrows() -> dict[str, set[str]]:
    """Returns for each subpackage the other subpackages that its modules import."""
    found: dict[str, set[str]] = {room(name): set() for name in GRAPH}
    for name, used in GRAPH.items():
        found[room(name)] |= {room(each) for each in used} - {room(name)}
    return found


def test_the_graph_is_read_from_the_sources() -> None:
    assert "inlinebench.records.result" in GRAPH["inlinebench.evaluation.calls"]
    assert "inlinebench.cuda_on_cpu.tokens" in GRAPH["inlinebench.cuda_on_cpu.launches"]  # a relative import


def test_the_imports_of_modules_have_no_cycle() -> None:
    assert list(TopologicalSorter(GRAPH).static_order())


def test_the_allowed_imports_of_subpackages_have_no_cycle() -> None:
    assert list(TopologicalSorter({name: used.split() for name, used in MAY_USE.items()}).static_order())


@pytest.mark.parametrize("name", sorted(arrows()))
def test_a_subpackage_imports_only_allowed_subpackages(name: str) -> None:
    assert arrows()[name] <= set(MAY_USE[name].split())


def test_every_allowed_import_is_used() -> None:
    found = arrows()
    assert {(name, used) for name in MAY_USE for used in MAY_USE[name].split() if used not in found[name]} == set()


def test_no_folder_has_too_many_modules() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in NAMES.values()}}
    assert {folder.name: count for folder, count in counts.items() if count > MOST_MODULES} == {}
