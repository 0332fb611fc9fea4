from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.records.result import (
    Baseline,
    Build,
    Environment,
    Kernels,
    KernelShare,
    Result,
    Roofline,
    Spread,
    Timing,
    Verdict,
)
from inlinebench.report.formats.html import page
from inlinebench.report.page.foreign import clean
from inlinebench.report.page.render import render
from inlinebench.report.rows import arrange

from .samples import FAILURES, any_result, check, result
from .thirty import HOSTILE, thirty

ONE = Spread(1.0, 0.9, 1.1)
VOID = {"meta", "link", "input"}


class Reader(HTMLParser):
    """What a page consists of: its elements with their attributes, its texts, and what was closed in a wrong order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.mismatched: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.mismatched.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def faults(self) -> list[str]:
        """Everything in the page that isn't its own: other scripts and styles, handlers, addresses, broken nesting."""
        found = [f"</{tag}>" for tag in self.mismatched]
        found += [f"{self.count(tag)} of {tag}" for tag in ("script", "style") if self.count(tag) != 1]
        found += [tag for tag, _ in self.elements if tag in {"img", "iframe", "object", "embed", "form", "base"}]
        for tag, attributes in self.elements:
            found += [f"{tag} {name}" for name in attributes if name.startswith("on") or name in ("style", "src")]
            target = attributes.get("href")
            if target is not None and not re.fullmatch(r"#(r[0-9]+|results)|data:,", target):
                found.append(target)
        return found


def hostile() -> Result:
    """A result that has the same text wherever it can have one."""
    timing = Timing(ONE, ONE, ONE, wall_ms=ONE, baselines=(Baseline(HOSTILE, ONE, ONE),), stopped_by=HOSTILE,
                    roofline=Roofline(1000, 4000, 0.2, 0.3, "compute"), gpu_unknown=HOSTILE, flags=(HOSTILE,))
    return Result(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, Verdict.PASSED, timing=timing,
        check=check(oracle=HOSTILE, weights=HOSTILE, notes=(HOSTILE,)),
        kernels=Kernels(0.5, (KernelShare(HOSTILE, HOSTILE, 1.0, 0.5),)), build=Build(1.0, False, HOSTILE),
        protections=(HOSTILE,), environment=Environment(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        log=HOSTILE,
    )


def test_text_of_strangers_stays_text_wherever_it_stands() -> None:
    failed = Result(HOSTILE, "other", "odd", "cuda:0", Verdict.CRASHED, HOSTILE, log=HOSTILE)
    made = page([hostile(), failed], HOSTILE, {f"{HOSTILE}/other": HOSTILE})
    read = Reader(made)
    assert read.faults() == []
    assert read.text.count(HOSTILE) > 30
    assert "<img" not in made


def test_what_is_not_escaped_is_found() -> None:
    made = page([result(verdict=Verdict.CRASHED, reason=HOSTILE)], "planted")
    assert Reader(made).faults() == []
    assert "img" in Reader(made.replace("&lt;img", "<img").replace("&gt;", ">")).faults()
    assert "3 of script" in Reader(made.replace("&lt;", "<").replace("&gt;", ">")).faults()


_parts = [*"<>&\"'/!-=`; \n\r\t\x00\x1b\u202e\ud800é", "script", "pre", "img", "onload", "]]>"]
_html = st.lists(st.sampled_from(_parts), max_size=30).map("".join)


@settings(max_examples=60)
@given(st.lists(any_result(), max_size=3), _html, _html, _html)
def test_any_results_make_a_page_in_which_only_its_own_is_alive(
    results: list[Result], title: str, reason: str, source: str
) -> None:
    failed = result(verdict=Verdict.WRONG, reason=reason or "empty", log=source)
    every = [*results, failed]
    made = render(arrange(every), title, {"matmul_diag/naive": source}, ())
    made.encode()  # lone surrogates can't be
    read = Reader(made)
    assert read.faults() == []
    assert sum(tag == "tbody" and (attributes.get("id") or "").startswith("r") for tag, attributes in read.elements) \
        == len(every)
    for text in (failed.reason, source):
        # A parser drops the line break at the start of a `pre`, and none is lost that anyone could see.
        assert clean(text).strip("\n") in read.text


@given(_html)
def test_cleaning_is_done_after_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_cleaning_keeps_what_is_honest_and_shows_what_deceives() -> None:
    source = "def f():\n\n\treturn 'é, 漢字, a\u00a0b'\n"
    assert clean(source) == source
    assert clean("\x1b[31mred\x1b[0m\r\nnext\rlast") == "red\nnext\nlast"
    assert clean("a\u202eb\x00c\ud800d\u200be") == "a\ufffdb\ufffdc\ufffdd\ufffde"


def test_the_policy_lets_only_the_pages_own_script_and_style_run() -> None:
    made = page([result(speedup=2.0)], "policy")
    (policy,) = [attributes["content"] for tag, attributes in Reader(made).elements
                 if attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert made.index("Content-Security-Policy") < made.index("<style>")  # a policy holds for what comes after it


def test_no_results_are_said_to_be_none() -> None:
    read = Reader(page([], "nothing"))
    assert "Nothing was evaluated." in read.text
    assert (read.faults(), read.count("table"), read.count("svg")) == ([], 0, 0)


def test_one_result_has_its_row_its_charts_and_its_details() -> None:
    made = page([replace(thirty()[0], seed=4711)], "one")
    read = Reader(made)
    assert read.faults() == []
    assert read.count("svg") == 8  # four charts, for a desk and for a phone
    for known in ("gemm_scale_batchnorm", "0.925 [0.921, 0.930]", "4711", "580.65.06", "ptxas info: 62 registers",
                  "gemm_scale_batchnorm_kernel", "137,438,953,472", "412 W", "landlock, seccomp, watchdog", "2.2e-05"):
        assert known in read.text


@pytest.mark.parametrize("verdict", FAILURES)
def test_failures_alone_have_their_reasons_and_no_charts(verdict: Verdict) -> None:
    read = Reader(page([result("p/s", verdict, reason="first\n  second", log="last words")], "failed"))
    assert "first\n  second" in read.text and "last words" in read.text
    assert (read.faults(), read.count("svg")) == ([], 0)
    assert "No result has a speedup." in read.text


def test_without_a_roofline_time_there_is_no_roofline() -> None:
    read = Reader(page([result(speedup=2.0)], "no roofline"))
    assert "No result has a roofline with counted bytes and operations." in read.text
    assert (read.faults(), read.count("svg")) == ([], 6)


def test_the_cpu_has_no_speedup_and_its_times_are_called_what_they_are() -> None:
    read = Reader(page([result(speedup=2.0, device="cpu")], "on the CPU"))
    assert read.count("svg") == 0
    assert "No speedup on the CPU" in read.text and "which say nothing of a GPU's" in read.text


def test_levels_have_their_own_lines_in_the_summary_and_a_filter() -> None:
    read = Reader(page([result("p/s", level=1), result("q/s", level=2)], "levels"))
    assert "s (level 1)" in read.text and "s (level 2)" in read.text
    assert ("select", {"data-column": "level"}) in read.elements
    one = Reader(page([result("p/s", level=1)], "one level"))
    assert "(level" not in one.text and one.count("select") == 0


def test_a_source_is_shown_where_it_is_given() -> None:
    results = [result("p/a", speedup=2.0), result("p/b", speedup=2.0)]
    assert "def forward" not in page(results, "without")
    assert page(results, "with", {"p/b": "def forward(self): ..."}).count("def forward") == 1


def test_marks_lead_to_the_rows_that_they_stand_for() -> None:
    made = page(thirty(), "links")
    rows = dict(re.findall(r'<tbody id="(r\d+)".*?<h3>(.*?)</h3>', made, re.DOTALL))
    links = re.findall(r'<a href="#(r\d+)" tabindex="-1"><title>([^\n<]*)\n', made)
    assert len(links) == 2 * (22 + 12 + 66)  # speedups, points of the roofline, three times of each; wide and narrow
    assert all(rows[target] == label for target, label in links)
    assert made.count("<title>") == 1 + len(links)  # the page's own, and nothing that says less than a label
    assert "vega" not in made


def test_a_page_of_thirty_results_is_small() -> None:
    assert len(page(thirty(), "size").encode()) < 500_000


@pytest.mark.parametrize("package", ["jinja2", "vl_convert"])
def test_a_missing_package_is_named_with_what_to_install(package: str) -> None:
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from inlinebench.records.errors import UsageError\nfrom inlinebench.report.formats.html import page\n"
        "try:\n    page([], 't')\nexcept UsageError as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told == f"an HTML page is made with {package}, which isn't installed: pip install 'inlinebench[report]'\n"
