"""Which room of the package may use which: the graph of imports has no circle, and no arrow that is not listed here."""

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
    "records": "",
    "wire": "",
    "cuda_on_cpu": "",
    "response": "",
    "sandbox": "wire",
    "timing": "records wire",
    "compare": "records",
    "report": "records",
    "messages": "records sandbox timing",
    "candidate": "cuda_on_cpu sandbox timing wire",
    "process": "candidate records sandbox timing wire",
    "compile": "cuda_on_cpu records sandbox wire",
    "problem": "compare messages process records sandbox timing wire",
    "evaluation": "compare messages problem process records sandbox timing wire",
    "judge": "compare compile evaluation messages problem process records timing version wire",
    "profiling": "candidate compile judge messages problem process records sandbox wire",
    "scheduler": "compile messages process profiling records report sandbox timing wire",
    "ray": "messages records report scheduler version",
    "serve": "messages records report scheduler version",
    "api": "records serve",
    "cli": "compile ray records report response scheduler version",
    "": "api records version",
}
"""By room (a folder or a module of the package; "" is the package itself): the other rooms that it may import."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module's full name and its file."""
    for path in PACKAGE.rglob("*.py"):
        parts = ("inlinebench", *path.relative_to(PACKAGE).with_suffix("").parts)
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


NAMES = dict(modules())


def imports(name: str, path: Path) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in it."""
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
    """By room: the other rooms that its modules import."""
    found: dict[str, set[str]] = {room(name): set() for name in GRAPH}
    for name, used in GRAPH.items():
        found[room(name)] |= {room(each) for each in used} - {room(name)}
    return found


def test_the_graph_is_read_from_the_sources() -> None:
    assert "inlinebench.records.result" in GRAPH["inlinebench.evaluation.calls"]
    assert "inlinebench.cuda_on_cpu.tokens" in GRAPH["inlinebench.cuda_on_cpu.launches"]  # a relative import


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert list(TopologicalSorter(GRAPH).static_order())


def test_rooms_do_not_use_each_other_in_a_circle() -> None:
    assert list(TopologicalSorter({name: used.split() for name, used in MAY_USE.items()}).static_order())


@pytest.mark.parametrize("name", sorted(arrows()))
def test_a_room_uses_only_the_rooms_that_it_may(name: str) -> None:
    assert arrows()[name] <= set(MAY_USE[name].split())


def test_no_allowed_arrow_is_unused() -> None:
    found = arrows()
    assert {(name, used) for name in MAY_USE for used in MAY_USE[name].split() if used not in found[name]} == set()


def test_folders_stay_small_enough_to_overlook() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in NAMES.values()}}
    assert {folder.name: count for folder, count in counts.items() if count > MOST_MODULES} == {}
