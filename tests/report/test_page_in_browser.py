"""Tests of the page in a real browser: mouse, keyboard, widths, colour schemes, accessibility, without scripts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inlinebench.report.comparison import compare
from inlinebench.report.formats.html import page

from .browser import Browser, found
from .samples import timing
from .thirty import FAILURES, HOSTILE, thirty

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(found() is None, reason="Chromium is not installed; run apt-get install chromium"),
]

LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
READABLE = 4.5
"""The least contrast of text by the Web Content Accessibility Guidelines."""
WIDTHS = (1440, 1024, 390)
SLACK = 3
"""Machines of CI are slow, and run other tests meanwhile."""
AXE = os.environ.get("AXE_CORE", "")
"""The file axe.min.js of the package axe-core (`npm pack axe-core`)."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = found()
    assert program is not None
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def made() -> str:
    before = [replace(each, reason="was so before") if each.reason else each for each in thirty()[3:]]
    before[0] = replace(before[0], timing=timing(9.0))
    return page(thirty(), "Thirty results", {"matmul_diag/fast": f"# {HOSTILE}\nclass ModelNew: ...\n"},
                ("before.jsonl", compare(before, thirty())))


@pytest.fixture
def shown(browser: Browser, made: str, tmp_path: Path) -> Browser:
    """The browser with the page of thirty results freshly opened, at desktop size in light mode."""
    browser.resize(1280, 900)
    browser.prefer("light")
    return opened(browser, made, tmp_path)


def opened(browser: Browser, text: str, folder: Path, until: str = "load") -> Browser:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    browser.open(path.as_uri(), until)
    return browser


def look(browser: Browser, expression: str) -> Any:
    """Returns the value of a JavaScript expression, which may use the functions of `look.js`."""
    return browser.evaluate(f"(() => {{ {LOOK}\nreturn ({expression}); }})()")


def without_policy(text: str) -> str:
    return re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)


def sort_by(browser: Browser, name: str, key: str) -> None:
    look(browser, f"head({name!r}).querySelector('button').focus()")
    browser.press(key)


def test_the_page_opens_without_errors_and_sends_no_requests(
    shown: Browser, made: str, tmp_path: Path
) -> None:
    opened(shown, made, tmp_path, "networkIdle")
    assert shown.complaints() == []
    assert shown.requests() == [(tmp_path / "page.html").as_uri()]
    assert look(shown, "[document.images.length, document.scripts.length]") == [0, 1]


def test_the_policy_blocks_requests_and_the_test_would_see_them(browser: Browser, made: str, tmp_path: Path) -> None:
    planted = made.replace("<main>", '<main><img src="http://127.0.0.1:9/planted.png" alt="">')
    opened(browser, without_policy(planted), tmp_path, "networkIdle")
    assert "http://127.0.0.1:9/planted.png" in browser.requests()
    opened(browser, planted, tmp_path, "networkIdle")
    assert any("Content Security Policy" in text for text in browser.complaints())
    blocked = [each["blockedReason"] for each in browser.named("Network.loadingFailed")]
    assert blocked == ["csp"] * len(browser.requests()[1:])


def test_the_policy_blocks_injected_scripts(browser: Browser, made: str, tmp_path: Path) -> None:
    planted = made.replace("<main>", "<main><script>window.planted = 1</script>")
    opened(browser, without_policy(planted), tmp_path)
    assert browser.evaluate("window.planted") == 1
    opened(browser, planted, tmp_path)
    assert browser.evaluate("window.planted") is None


def test_a_numeric_column_is_sorted_by_value_with_absent_values_last(shown: Browser) -> None:
    for sign, direction in ((1, "ascending"), (-1, "descending")):
        sort_by(shown, "speedup", "Enter")
        assert look(shown, "sorts()") == [["speedup", direction]]
        texts = look(shown, "column('speedup')")
        known = [float(text.partition(" ")[0]) for text in texts[:22]]
        assert known == sorted(known, key=lambda value: sign * value)
        assert texts[22:] == ["—"] * 8


def test_a_text_column_is_sorted_naturally_and_only_one_column_is_marked(shown: Browser) -> None:
    sort_by(shown, "speedup", " ")
    sort_by(shown, "solution", " ")
    assert look(shown, "sorts()") == [["solution", "ascending"]]
    assert look(shown, "column('solution')") == ["fast"] * 10 + ["generated_3"] * 10 + ["naive"] * 10


def test_details_stay_with_their_row_after_sorting(shown: Browser) -> None:
    sort_by(shown, "speedup", "Enter")
    look(shown, "toggleAll()")
    names = look(shown, "names()")
    assert len(names) == 30
    assert all(row == heading for row, heading in names)


def test_a_text_filters_rows_and_charts(shown: Browser) -> None:
    shown.evaluate("document.getElementById('words').focus()")
    shown.write("TRANSPOSED fast")
    assert sorted(look(shown, "problems()")) == ["matmul_transposed_a", "matmul_transposed_b"]
    assert shown.evaluate("document.getElementById('shown').innerText") == "2 of 30 shown"
    marks = look(shown, "all('#shares .wide g').map(mark => mark.classList.contains('out'))")
    assert (len(marks), marks.count(False)) == (22, 2)
    assert shown.complaints() == []


def test_chips_of_a_kind_add_up_and_those_of_two_kinds_restrict(shown: Browser) -> None:
    look(shown, "press('wrong')")
    look(shown, "press('skipped')")
    assert look(shown, "problems()") == ["cumulative_sum", "cumulative_sum"]
    assert [value for value, pressed in look(shown, "chips()") if pressed == "true"] == ["wrong", "skipped"]
    look(shown, "press('new')")
    assert look(shown, "problems()") == []
    look(shown, "press('wrong')")
    look(shown, "press('skipped')")
    assert len(look(shown, "problems()")) == 3


def test_the_filter_finds_a_row_by_its_reason(shown: Browser) -> None:
    shown.evaluate("document.getElementById('words').focus()")
    shown.write("blockIdy")
    assert look(shown, "problems()") == ["gemm_scale_batchnorm"]


@pytest.mark.parametrize("key", ["Enter", " "])
def test_a_row_opens_and_closes_by_keyboard(shown: Browser, key: str) -> None:
    shown.evaluate("document.querySelector('#r7 .row button').focus()")
    for state in (["false", False], ["true", True], ["false", False]):
        assert look(shown, "state('r7')") == state
        shown.press(key)


def test_tab_reaches_every_control_and_the_focus_is_visible(shown: Browser) -> None:
    stops = []
    for _ in range(90):
        shown.press("Tab")
        stops.append(look(shown, "focused()"))
    names = [name for name, _ in stops]
    assert names[0] == "skip"
    assert {"theme", "words", "problem", "speedup", "batched_matmul"} <= set(names)
    assert [name for name, visible in stops if not visible] == []


def test_the_skip_link_moves_the_focus_to_the_results(shown: Browser) -> None:
    shown.press("Tab")
    shown.press("Enter")
    assert shown.evaluate("[location.hash, document.activeElement.id]") == ["#results", "results"]


def test_a_mark_in_a_chart_opens_its_row_each_time(shown: Browser) -> None:
    for _ in range(2):
        look(shown, "clickFirstMark()")
        assert look(shown, "opened()") == ["cumulative_sum/naive"]
        shown.evaluate("document.querySelector('.row button[aria-expanded=true]').click()")
        assert look(shown, "opened()") == []


def test_on_a_phone_only_tables_scroll_sideways(browser: Browser, made: str, tmp_path: Path) -> None:
    browser.resize(390, 800, mobile=True)
    browser.prefer("light")
    opened(browser, made, tmp_path)
    look(browser, "toggleAll()")
    look(browser, "all('.parts details').forEach(each => { each.open = true; })")
    assert look(browser, "[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    assert max(look(browser, "seen('.parts, svg').map(each => each.getBoundingClientRect().width)")) <= 390
    assert look(browser, "seen('.results > thead th').map(each => each.innerText.trim())") == [
        "problem", "solution", "verdict", "speedup"]
    assert look(browser, "[seen('.wide').length, seen('.narrow').length]") == [0, 1]
    browser.evaluate("document.querySelector('h1').style.width = '900px'")
    assert look(browser, "document.documentElement.scrollWidth") > 390  # the test finds an element that is too wide


@pytest.mark.parametrize("width", WIDTHS)
def test_no_column_is_cut(shown: Browser, width: int) -> None:
    shown.resize(width, 900)
    assert look(shown, "[document.documentElement.scrollWidth, cut()]") == [width, 0]
    wide = look(shown, "seen('.scroll').filter(each => each.scrollWidth > each.clientWidth).length")
    assert width < 1440 or (wide, look(shown, "seen('.results > thead th').length")) == (0, 11)
    shown.evaluate("document.querySelector('.results').style.width = '2000px'")
    assert look(shown, "cut()") > 0


@pytest.mark.skipif(not AXE, reason="AXE_CORE does not name the axe.min.js of npm's axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation(shown: Browser, width: int, scheme: str) -> None:
    shown.resize(width, 900, mobile=width < 500)
    shown.prefer(scheme)
    look(shown, "all('.row button').filter((_, at) => at % 7 === 0).forEach(each => each.click())")
    shown.evaluate(Path(AXE).read_text(encoding="utf-8"))
    told = "found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)])"
    assert shown.evaluate(f"axe.run({{ resultTypes: ['violations'] }}).then({told})") == []
    shown.evaluate("document.querySelector('h1').replaceChildren()")
    assert shown.evaluate(f"axe.run('h1').then({told})") != []  # it finds a fault


def test_groups_have_headings_until_the_table_is_sorted_and_only_while_they_have_rows(shown: Browser) -> None:
    headings = "seen('.group').map(each => each.innerText.trim())"
    first, *others = look(shown, headings)
    assert first == "22 passed, the fastest first" and all(re.match(r"\d+ [a-z_]+: ", each) for each in others)
    look(shown, "press('passed')")
    assert look(shown, headings) == [first]
    sort_by(shown, "problem", "Enter")
    assert look(shown, headings) == []


def test_the_matrix_leaves_no_half_of_the_page_blank(shown: Browser) -> None:
    shown.resize(1024, 900)
    right = look(shown, "seen('.overview section').map(each => each.getBoundingClientRect().right)")
    assert max(right) > 900


def test_two_thousand_rows_open_quickly(browser: Browser, tmp_path: Path) -> None:
    rows = [replace(each, problem=f"{each.problem}_{number}") for number in range(67) for each in thirty()]
    opened(browser, page(rows[:2000], "Many results"), tmp_path)
    took = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took < 2000 * SLACK


def test_the_header_of_the_table_stays_in_view(shown: Browser) -> None:
    shown.evaluate("document.getElementById('r28').scrollIntoView()")
    assert look(shown, "head('speedup').getBoundingClientRect().top") == 0


def test_tabs_show_one_chart_at_a_time(shown: Browser) -> None:
    assert look(shown, "seen('.panel').map(each => each.id)") == ["shares"]
    shown.evaluate("document.getElementById('shares-tab').focus()")
    shown.press("ArrowRight")
    assert look(shown, "[focused()[0], seen('.panel').map(each => each.id)]") == ["roofline-tab", ["roofline"]]


def test_a_change_leads_to_its_row(shown: Browser) -> None:
    shown.evaluate("document.querySelector('#changes tbody a').click()")
    shown.evaluate("new Promise(done => setTimeout(done, 100))")
    assert look(shown, "opened()") == [look(shown, "document.querySelector('#changes tbody th').innerText")]


def test_dark_mode_follows_the_system_and_the_button(shown: Browser) -> None:
    light = look(shown, "colours()")
    shown.prefer("dark")
    dark = look(shown, "colours()")
    assert light[0] == "rgb(255, 255, 255)"
    assert not set(light) & set(dark)
    assert shown.evaluate("document.getElementById('theme').innerText") == "Switch to light"
    shown.evaluate("document.getElementById('theme').click()")
    assert look(shown, "colours()") == light
    assert shown.evaluate("document.getElementById('theme').innerText") == "Switch to dark"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(shown: Browser, scheme: str) -> None:
    shown.prefer(scheme)
    look(shown, "toggleAll()")
    assert look(shown, "contrast()") >= READABLE
    shown.evaluate("document.querySelector('h1').style.color = getComputedStyle(document.body).backgroundColor")
    assert look(shown, "contrast()") < READABLE  # the test finds an unreadable text


def test_no_texts_of_a_chart_overlap(shown: Browser) -> None:
    for width in WIDTHS:
        shown.resize(width, 900)
        for chart in ("shares", "roofline", "fast-p"):
            shown.evaluate(f"document.getElementById('{chart}-tab').click()")
            assert look(shown, "overlaps()") == []
    look(shown, "all('#fast-p .narrow text')[0].replaceWith(all('#fast-p .narrow text')[1].cloneNode(true))")
    assert look(shown, "overlaps()") != []  # the test finds overlapping texts


def test_the_page_is_readable_without_scripts(browser: Browser, made: str, tmp_path: Path) -> None:
    browser.scripts(allowed=False)
    try:
        opened(browser, made, tmp_path)
        assert look(browser, "document.documentElement.className") == ""
        assert look(browser, "seen('button, input, select, output').length") == 0
        reasons = look(browser, "seen('.why pre').map(each => each.innerText)")
        assert {reason for _, reason, _ in FAILURES.values()} == set(reasons)
        assert look(browser, "seen('.panel').length") == 3
        browser.evaluate("document.querySelector('#r2 summary').focus()")
        browser.press("Enter")
        assert look(browser, "seen('#r2 .parts').length") == 1
    finally:
        browser.scripts(allowed=True)
