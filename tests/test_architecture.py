"""The imports of `inlinebench` and `cuda_on_cpu`: they have no cycle, and only those listed here are allowed."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .running import ROOT

HARNESS = ROOT / "harness"
PACKAGES = ("inlinebench", "cuda_on_cpu")
MOST_MODULES = 16

MAY_USE = {
    "version": "",
    "foreign": "",
    "problem.shapes": "",
    "records": "foreign problem.shapes",
    "wire": "",
    "response": "",
    "sandbox": "wire",
    "timing": "records wire",
    "compare": "records",
    "report": "foreign records",
    "messages": "records sandbox timing",
    "candidate": "devices sandbox timing wire",
    "process": "candidate records sandbox timing wire",
    "compile": "records sandbox wire",
    "devices": "compile records",
    "problem": "compare devices messages problem.shapes process records sandbox timing wire",
    "evaluation": "compare messages problem process records sandbox timing wire",
    "judge": "compare compile evaluation messages problem problem.shapes process records sandbox timing version wire",
    "audit": "compare evaluation foreign judge messages problem records sandbox wire",
    "profiling": "candidate compile devices judge messages problem records wire",
    "scheduler": "compile devices foreign messages process profiling records report sandbox wire",
    "ray": "messages records report sandbox scheduler version",
    "serve": "foreign messages records report scheduler version wire",
    "api": "records serve",
    "cli": "audit compile foreign ray records report response scheduler version wire",
    "": "api records version",
}
"""The subpackages of `inlinebench` that each subpackage may import. Top-level modules count as well, and "" is the
package itself."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yields the full name and the file of every module."""
    for path in (path for package in PACKAGES for path in (HARNESS / package).rglob("*.py")):
        parts = path.relative_to(HARNESS).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


NAMES = dict(modules())


def imports(name: str, path: Path) -> Iterator[str]:
    """Yields the modules of both packages that a module imports, at any place in its code."""
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


def is_in(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def room(name: str) -> str:
    """Returns the subpackage of a module. One that `MAY_USE` lists is a room of its own within another."""
    parts = name.split(".")
    within = ".".join(parts[1:3])
    return within if within in MAY_USE else parts[1] if parts[1:] else ""


def arrows() -> dict[str, set[str]]:
    """Returns for each subpackage of `inlinebench` the other subpackages that its modules import."""
    own = {name: {each for each in used if is_in(each, "inlinebench")} for name, used in GRAPH.items()
           if is_in(name, "inlinebench")}
    found: dict[str, set[str]] = {room(name): set() for name in own}
    for name, used in own.items():
        found[room(name)] |= {room(each) for each in used} - {room(name)}
    return found


def crossings(graph: Mapping[str, Collection[str]]) -> set[tuple[str, str]]:
    """Returns the imports from one of the packages into the other that are not allowed: all but those of the public
    names of `cuda_on_cpu` by the code for the CPU."""
    return {(name, each) for name, used in graph.items() for each in used
            if name.partition(".")[0] != each.partition(".")[0]
            and not (is_in(name, "inlinebench.devices.cpu") and each == "cuda_on_cpu")}


def test_the_graph_is_read_from_the_sources() -> None:
    assert "inlinebench.records.result" in GRAPH["inlinebench.evaluation.calls"]
    assert "cuda_on_cpu.tokens" in GRAPH["cuda_on_cpu.launches"]  # a relative import


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


def test_only_the_code_for_the_cpu_uses_the_emulation_and_only_its_public_names() -> None:
    assert crossings(GRAPH) == set()
    assert "cuda_on_cpu" in GRAPH["inlinebench.devices.cpu.emulation"]


@pytest.mark.parametrize(("name", "source", "imported"), [
    ("cuda_on_cpu.planted", "from inlinebench.version import __version__", "inlinebench.version"),
    ("inlinebench.compile.planted", "def late():\n    import cuda_on_cpu", "cuda_on_cpu"),
    ("inlinebench.devices.planted", "from cuda_on_cpu import translate", "cuda_on_cpu"),
    ("inlinebench.devices.cpu.planted", "from cuda_on_cpu.tokens import Code", "cuda_on_cpu.tokens"),
    ("inlinebench.devices.cpu.planted", "from cuda_on_cpu import python_side", "cuda_on_cpu.python_side"),
])
def test_a_planted_import_between_the_packages_is_found(
    name: str, source: str, imported: str, tmp_path: Path
) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(source)
    assert crossings({name: set(imports(name, planted))}) == {(name, imported)}


def test_no_folder_has_too_many_modules() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in NAMES.values()}}
    assert {folder.name: count for folder, count in counts.items() if count > MOST_MODULES} == {}
