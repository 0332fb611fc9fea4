"""The imports of `inlinebench` and `cuda_on_cpu`: they have no cycle, and only those listed here are allowed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from inlinebench.device_kinds import KINDS

from .running import ROOT

HARNESS = ROOT / "harness"
PACKAGES = ("inlinebench", "cuda_on_cpu")

MAY_USE = {
    "errors": "",
    "device_kinds": "",
    "version": "",
    "foreign": "",
    "builds": "results",
    "problem.shapes": "",
    "wire": "",
    "parsing": "",
    "response": "parsing",
    "results": "device_kinds errors foreign",
    "catalog": "errors parsing problem.shapes results",
    "options": "catalog device_kinds errors",
    "sandbox": "wire",
    "timing": "results",
    "compare": "device_kinds results",
    "report": "builds catalog device_kinds errors foreign options results",
    "messages": "builds options problem.shapes results sandbox timing wire",
    "compile": "builds errors results sandbox wire",
    "devices": "builds compile device_kinds errors options results sandbox timing wire",
    "candidate": "devices sandbox timing wire",
    "process": "builds candidate devices errors results sandbox timing wire",
    "problem": "catalog compare devices messages problem.shapes process sandbox timing wire",
    "evaluation": "builds catalog compare devices messages problem process results timing wire",
    "judge": "builds compare compile devices evaluation messages problem problem.shapes process results timing "
             "version wire",
    "audit": "compare devices errors evaluation foreign judge messages problem sandbox wire",
    "profiling": "builds candidate compile devices messages options problem results wire",
    "scheduler": "builds catalog compile device_kinds devices errors messages options process profiling results "
                 "sandbox wire",
    "ray": "device_kinds errors messages options results sandbox scheduler serve version",
    "serve": "catalog device_kinds errors foreign messages options response results scheduler version wire",
    "api": "results serve",
    "cli": "audit catalog compile errors foreign options ray report response results scheduler serve version wire",
    "__main__": "cli",
    "": "api results serve version",
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
    assert "inlinebench.results.result" in GRAPH["inlinebench.evaluation.calls"]
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


def test_no_two_classes_share_a_name() -> None:
    names = Counter(node.name for path in (HARNESS / "inlinebench").rglob("*.py")
                    for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1 and not name.startswith("_")} == set()


MOST_PARAMETERS = 7


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the number of a function's parameters, without `self` and `cls`."""
    named = function.args
    every = [each.arg for each in (*named.posonlyargs, *named.args, *named.kwonlyargs)]
    return len(every) - (every[:1] in (["self"], ["cls"]))


def test_no_function_has_too_many_parameters() -> None:
    assert [f"{path.relative_to(HARNESS)}: {node.name}" for path in (HARNESS / "inlinebench").rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > MOST_PARAMETERS] == []


DEVICE_NAMES = {kind.name for kind in KINDS}
NAMES_DEVICES = ("devices", "options", "device_kinds.py")
"""Where the names of devices may be compared: in the devices' own code, and where options are parsed."""


def comparisons_with_a_device(tree: ast.AST) -> Iterator[int]:
    """Yields the lines that compare something with the name of a kind of device."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [each for side in (node.left, *node.comparators)
                     for each in (side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side])]
            if any(isinstance(part, ast.Constant) and part.value in DEVICE_NAMES for part in parts):
                yield node.lineno


def test_only_devices_and_options_compare_the_names_of_devices() -> None:
    package = HARNESS / "inlinebench"
    found = [f"{path.relative_to(package)}:{line}" for path in package.rglob("*.py")
             if not str(path.relative_to(package)).startswith(NAMES_DEVICES)
             for line in comparisons_with_a_device(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == []


@pytest.mark.parametrize("planted", [
    'device.type == "cuda"', '"cpu" != name', 'name in ("cuda", "hip")', 'x if kind == "cpu" else y', '"cpu" in names',
])
def test_a_planted_comparison_is_found(planted: str) -> None:
    assert list(comparisons_with_a_device(ast.parse(planted))) == [1]


@pytest.mark.parametrize("honest", ['device.kind.emulates_cuda', 'name == "cuda_sources"', 'torch.device("cuda", 0)'])
def test_what_compares_nothing_is_not_found(honest: str) -> None:
    assert list(comparisons_with_a_device(ast.parse(honest))) == []
