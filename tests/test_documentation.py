"""Tests of the documentation and of docstrings: what they name exists, links lead somewhere on GitHub, and the
generated pages are complete.

CI also builds the site with `mkdocs build --strict`, which checks the links there.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from inlinebench.cli.main import COMMANDS
from inlinebench.results.result import Verdict

from .running import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "harness/cuda_on_cpu/README.md"]
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_PATH = re.compile(r"(?<![\w./'-])(?:harness|tests|benchmarks|problems|solutions|docs)/[\w./*-]*[\w*/]")
_MODULE = re.compile(r"\b(?:inlinebench|cuda_on_cpu)(?:\.\w+)+")
_RAISES = re.compile(r"\b[Rr]aises ((?:[A-Z]\w+(?:, or |, and |, | or | and )?)+)")
_MADE_UP = {"PROBLEM", "first", "row_norm", "bias_relu"}
"""Problems and solutions that pages make up."""
_SOURCES = [path for folder in ("harness", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


def prose(page: Path) -> str:
    """Returns a page without its blocks of code."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Returns the anchors that GitHub gives to the headings of a page."""
    texts = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose(page))]
    return {f"{text}-{texts[:at].count(text)}" if text in texts[:at] else text for at, text in enumerate(texts)}


def broken(page: Path) -> Iterator[str]:
    """Yields the relative links of a page that lead nowhere."""
    for link in _LINK.findall(_CODE.sub("", prose(page))):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(broken(page)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` & c\n[a](#a-b--c) [b](#b) [c](none.md) [d](page.md#a-b--c) [e](https://e.org/x)\n"
                    "`[f](f.md)`\n```\n# Not a heading\n[g](g.md)\n```\n[h](#not-a-heading)\n")
    assert list(broken(page)) == ["#b", "none.md", "#not-a-heading"]


def test_pages_in_docs_link_only_to_pages_in_docs() -> None:
    """The site has no others."""
    docs = ROOT / "docs"
    found = [(page, link) for page in docs.rglob("*.md") for link in _LINK.findall(_CODE.sub("", prose(page)))
             if "://" not in link and not (page.parent / link.partition("#")[0]).resolve().is_relative_to(docs)]
    assert found == []


def docstrings(path: Path) -> list[str]:
    """Returns the docstrings in a file: of modules, classes, functions and attributes."""
    return [node.value.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)]


def missing(text: str) -> Iterator[str]:
    """Yields the files and modules that a text names and that don't exist."""
    for path in _PATH.findall(text):
        made_up = path.startswith(("problems/", "solutions/")) and Path(path.split("/")[1]).stem in _MADE_UP
        if not made_up and not any(ROOT.glob(path.rstrip("/"))):
            yield path
    for name in _MODULE.findall(text):
        if not is_defined(name.removesuffix(".py")):
            yield name


def is_defined(name: str) -> bool:
    """Whether a dotted name is a module, or a name that its module's source contains, or an attribute of a class."""
    above, _, last = name.rpartition(".")
    folder, within = (ROOT / "harness" / each.replace(".", "/") for each in (name, above))
    files = [path for path in (within.with_suffix(".py"), within / "__init__.py") if path.is_file()]
    return (folder.is_dir() or folder.with_suffix(".py").is_file()
            or any(re.search(rf"\b{last}\b", path.read_text(encoding="utf-8")) for path in files)
            or (above.rpartition(".")[2][:1].isupper() and is_defined(above)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_module_that_a_page_names_exists(page: Path) -> None:
    if page.name != "CHANGELOG.md":  # it names what was renamed
        assert list(missing(page.read_text(encoding="utf-8"))) == []


def test_every_file_and_module_that_a_docstring_names_exists() -> None:
    assert {str(path): found for path in _SOURCES if (found := list(missing("\n".join(docstrings(path)))))} == {}


def test_every_exception_that_a_docstring_raises_exists() -> None:
    classes = [node for path in _SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
               if isinstance(node, ast.ClassDef)]
    known = {name for module in (builtins, subprocess) for name, each in vars(module).items()
             if isinstance(each, type) and issubclass(each, BaseException)}
    for _ in classes:  # one level of inheritance a time
        more = {each.name for each in classes for base in each.bases if ast.unparse(base).split(".")[-1] in known}
        if more <= known:
            break
        known |= more
    found = {(str(path.relative_to(ROOT)), name) for path in _SOURCES for text in docstrings(path)
             for names in _RAISES.findall(text) for name in re.findall(r"[A-Z]\w+", names) if name not in known}
    assert not found


def test_a_missing_file_and_module_are_found() -> None:
    text = "`harness/inlinebench/no.py`, tests/test_doc*.py, `inlinebench.no.name`, `inlinebench.results.result.Result`"
    assert list(missing(text)) == ["harness/inlinebench/no.py", "inlinebench.no.name"]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    specification = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_options_has_every_option(hooks: ModuleType, name: str) -> None:
    page = (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")
    part = hooks.on_page_markdown(page).partition(f"## inlinebench {name}\n")[2].partition("\n## ")[0]
    for option in set(hooks.parser_of(name).options) - {"-h", "--help", "-V", "--version"}:
        assert re.search(rf"<span.*`(.*, )?{option}\b.*`</span>", part), option


def test_the_page_of_the_schema_has_every_record(hooks: ModuleType) -> None:
    page = hooks.on_page_markdown((ROOT / "docs/reference/schema.md").read_text(encoding="utf-8"))
    for name in ("Result", "Timing", "Spread", "Mismatch"):
        assert f"\n## {name}\n" in page
    assert "| `worst_error` | number |  | The largest" in page


def test_the_page_of_verdicts_has_every_verdict(hooks: ModuleType) -> None:
    page = hooks.on_page_markdown((ROOT / "docs/reference/verdicts.md").read_text(encoding="utf-8"))
    assert all(f"| {each.symbol} | `{each}` | {each.meaning} | " in page for each in Verdict)


def test_a_page_without_a_generated_part_stays_as_it_is(hooks: ModuleType) -> None:
    assert hooks.on_page_markdown("# A page\n") == "# A page\n"


@pytest.mark.slow
def test_the_picture_of_the_roofline_shows_the_times_of_the_tables(tmp_path: Path) -> None:
    drawn = tmp_path / "roofline.svg"
    subprocess.run([sys.executable, ROOT / "benchmarks/roofline_plot.py", drawn], check=True)
    assert drawn.read_text(encoding="utf-8") == (ROOT / "docs/roofline.svg").read_text(encoding="utf-8")
