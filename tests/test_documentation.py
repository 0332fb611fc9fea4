"""Tests of the documentation: links lead somewhere on GitHub, and the generated pages are complete.

CI also builds the site with `mkdocs build --strict`, which checks the links there.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from inlinebench.cli.main import COMMANDS
from inlinebench.records.result import Verdict

from .running import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "harness/cuda_on_cpu/README.md"]
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
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
