"""Tests of the page of a history in a real browser: widths, colour schemes, accessibility, speed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.report.formats.html import history_page
from inlinebench.report.history.collected import history

from .browser import Browser, found
from .days import days, failing
from .test_page_in_browser import READABLE, SLACK, WIDTHS, look, opened

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(found() is None, reason="Chromium is not installed; run apt-get install chromium"),
]
AXE = os.environ.get("AXE_CORE", "")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = found()
    assert program is not None
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def made() -> str:
    runs = days(changes={"p3/fast": (12, 1.09), "p5/fast": (20, 0.8)})
    runs[14:] = [failing(run, "p3/fast", reason="a reason of many words, " * 12) for run in runs[14:]]
    return history_page(history(runs), "Daily runs")


@pytest.fixture
def shown(browser: Browser, made: str, tmp_path: Path) -> Browser:
    """The browser with the page freshly opened, at desktop size in light mode."""
    browser.resize(1280, 900)
    browser.prefer("light")
    return opened(browser, made, tmp_path)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window_and_no_texts_overlap(shown: Browser, width: int) -> None:
    shown.resize(width, 900, mobile=width < 500)
    shown.evaluate("document.querySelector('details').open = true")
    assert look(shown, "document.documentElement.scrollWidth") == width
    assert look(shown, "seen('.listed').filter(each => each.scrollWidth > each.clientWidth).length") == 0
    assert look(shown, "seen('figure svg').length") == 12
    assert look(shown, "overlaps()") == []
    assert shown.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(shown: Browser, scheme: str) -> None:
    shown.prefer(scheme)
    assert look(shown, "contrast()") >= READABLE


@pytest.mark.skipif(not AXE, reason="AXE_CORE does not name the axe.min.js of npm's axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation(shown: Browser, width: int, scheme: str) -> None:
    shown.resize(width, 900, mobile=width < 500)
    shown.prefer(scheme)
    shown.evaluate("document.querySelector('details').open = true")
    shown.evaluate(Path(AXE).read_text(encoding="utf-8"))
    told = "found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)])"
    assert shown.evaluate(f"axe.run({{ resultTypes: ['violations'] }}).then({told})") == []


def test_a_change_leads_to_its_chart_and_the_button_switches_colours(shown: Browser) -> None:
    shown.evaluate("document.querySelector('.listed a').click()")
    assert shown.evaluate("document.querySelector('figure:target h3').innerText") == "p3/fast"
    light = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.evaluate("document.getElementById('theme').click()")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != light


def test_two_thousand_rows_open_quickly(browser: Browser, tmp_path: Path) -> None:
    runs = days(30, 2000, changes={f"p{number}/fast": (12, 1.09) for number in range(0, 2000, 10)})
    opened(browser, history_page(history(runs), "Many rows"), tmp_path)
    took = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took < 2000 * SLACK
