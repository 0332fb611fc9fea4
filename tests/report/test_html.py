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

from inlinebench.foreign import block
from inlinebench.report.comparison import compare
from inlinebench.report.formats.html import page
from inlinebench.report.page.charts import Charts
from inlinebench.report.page.render import render
from inlinebench.report.rows import arrange
from inlinebench.results.launches import Counters, Launched
from inlinebench.results.result import Build, Environment, Kernels, KernelShare, PassKernels, Result, Verdict
from inlinebench.results.times import Baseline, PassTimes, Roofline, Spread, Timing

from .samples import FAILURES, SLOW, any_result, check, result
from .thirty import HOSTILE, thirty

ONE = Spread(1.0, 0.9, 1.1)
VOID = {"meta", "link", "input", "wbr"}


class Reader(HTMLParser):
    """Parses a page into its elements with attributes, its texts without line numbers, and end tags in a wrong order.
    """

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
        if self._open[-1:] != ["i"]:  # the number of a line
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    @property
    def charts(self) -> int:
        return sum(name == "svg" and attributes.get("role") == "img" for name, attributes in self.elements)

    def faults(self) -> list[str]:
        """Returns everything that the page must not have: other scripts and styles, handlers, URLs, broken nesting."""
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
    """A result with a hostile text in every text field."""
    timing = Timing(ONE, ONE, ONE, wall_ms=ONE, baselines=(Baseline(HOSTILE, ONE, ONE),), stopped_by=HOSTILE,
                    roofline=Roofline(1000, 4000, 0.2, 0.3, "compute"), gpu_unknown=HOSTILE, flags=(HOSTILE,))
    return Result(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, Verdict.PASSED, timing=timing,
        check=check(oracle=HOSTILE, weights=HOSTILE, notes=(HOSTILE,)),
        kernels=Kernels(0.5, (KernelShare(HOSTILE, HOSTILE, 1.0, 0.5),)),
        build=Build(1.0, False, HOSTILE),
        protections=(HOSTILE,), environment=Environment(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        log=HOSTILE,
    )


def test_untrusted_text_is_escaped_everywhere() -> None:
    failed = Result(HOSTILE, "other", "odd", "cuda:0", Verdict.CRASHED, HOSTILE, log=HOSTILE)
    made = page([hostile(), failed], HOSTILE, {f"{HOSTILE}/other": HOSTILE})
    read = Reader(made)
    assert read.faults() == []
    assert read.text.count(HOSTILE) > 30
    assert "<img" not in made


def test_the_page_says_what_a_call_with_a_backward_did() -> None:
    passes = (PassKernels("forward", 0.25, 1.0), PassKernels("backward", 0.5, 0.25))
    kernels = Kernels(0.5, (KernelShare("rows", "own", 0.375, 0.5),), passes)
    row = result("p/s", speedup=2.0, backward=True, kernels=kernels)
    assert row.timing is not None
    times = tuple(PassTimes(name, ONE, Spread(0.125, 0.1, 0.2), Spread(8.0, 7.0, 9.0), (Baseline("compile", ONE, ONE),))
                  for name in ("forward", "backward"))
    text = Reader(page([replace(row, timing=replace(row.timing, passes=times))], "both")).text
    assert "Times of forward and backward alone" in text and "backward: speedup over compile" in text
    assert "forward: solution ms" in text and "8.00" in text
    assert "forward and backward" in text
    assert "; forward 0.250 ms, 100.0% own; backward 0.500 ms, 25.0% own" in text
    assert "backward" not in Reader(page([result("p/s", speedup=2.0)], "forward")).text


def test_the_page_says_why_a_solution_is_slow_and_how_its_kernels_were_launched() -> None:
    share = KernelShare("rows(float*)", "own", 1.0, 1.0, 1, Launched(4096, 256, 255, 0),
                        Counters(1.0, local_bytes=600_000_000))
    text = Reader(page([result("p/s", timing=SLOW, kernels=Kernels(1.0, (share,)))], "slow")).text
    assert "Why it is slow" in text and "spills: 100% of the time goes to `rows`, which moves 600,000,000 bytes" in text
    assert "4,096 x 256 threads, 255 registers" in text
    assert "Why it is slow" not in Reader(page([result("p/s", speedup=2.0, kernels=Kernels(1.0))], "fine")).text


def test_the_reader_finds_unescaped_text() -> None:
    made = page([result(verdict=Verdict.CRASHED, reason=HOSTILE)], "planted")
    assert Reader(made).faults() == []
    assert "img" in Reader(made.replace("&lt;img", "<img").replace("&gt;", ">")).faults()
    assert "2 of script" in Reader(made.replace("&lt;", "<").replace("&gt;", ">")).faults()


_parts = [*"<>&\"'/!-=`; \n\r\t\x00\x1b\u202e\ud800é", "script", "pre", "img", "onload", "]]>"]
_html = st.lists(st.sampled_from(_parts), max_size=30).map("".join)


@settings(max_examples=60)
@given(st.lists(any_result(), max_size=3), _html, _html, _html)
def test_any_results_make_a_page_without_foreign_active_content(
    results: list[Result], title: str, reason: str, source: str
) -> None:
    failed = result(verdict=Verdict.WRONG, reason=reason or "empty", log=source)
    every = [*results, failed]
    made = render(arrange(every), title, {"matmul_diag/naive": source}, Charts((), ()))
    made.encode()  # fails for lone surrogates
    read = Reader(made)
    assert read.faults() == []
    assert sum(tag == "tbody" and (attributes.get("id") or "").startswith("r") for tag, attributes in read.elements) \
        == len(every)
    for text in (failed.reason, source):
        # A parser drops the newline at the start of a `pre`.
        assert block(text).strip("\n") in read.text


def test_the_policy_allows_only_the_pages_own_script_and_style() -> None:
    made = page([result(speedup=2.0)], "policy")
    (policy,) = [attributes["content"] for tag, attributes in Reader(made).elements
                 if attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert made.index("Content-Security-Policy") < made.index("<style>")  # a policy applies only to elements after it


def test_a_page_without_results_says_so() -> None:
    read = Reader(page([], "nothing"))
    assert "Nothing was evaluated." in read.text
    assert (read.faults(), read.count("table"), read.charts) == ([], 0, 0)


def test_one_result_has_a_row_charts_and_details() -> None:
    made = page([replace(thirty()[0], seed=4711)], "one")
    read = Reader(made)
    assert read.faults() == []
    assert read.charts == 6  # three charts, each wide and narrow
    for known in ("gemm_scale_batchnorm", "0.925 [0.921, 0.930]", "4711", "580.65.06", "ptxas info: 62 registers",
                  "gemm_scale_batchnorm_kernel", "137,438,953,472", "412 W", "landlock, seccomp, watchdog", "2.2e-05"):
        assert known in read.text


@pytest.mark.parametrize("verdict", FAILURES)
def test_a_page_of_failures_has_reasons_and_no_charts(verdict: Verdict) -> None:
    read = Reader(page([result("p/s", verdict, reason="first\n  second", log="last words")], "failed"))
    assert "first\n  second" in read.text and "last words" in read.text
    assert (read.faults(), read.charts) == ([], 0)
    assert "Hardware limits" not in read.text


def test_without_a_roofline_time_there_is_no_roofline_chart() -> None:
    read = Reader(page([result(speedup=2.0)], "no roofline"))
    assert (read.faults(), read.charts) == ([], 2)  # fast_p, wide and narrow
    assert "Roofline" not in read.text


def test_results_on_the_cpu_have_no_speedup_and_their_times_are_labelled() -> None:
    made = page([result(speedup=2.0, device="cpu")], "on the CPU")
    read = Reader(made)
    assert read.charts == 0
    shown = made.partition("<main>")[2].partition("<noscript>")[0]
    assert not any(word in shown for word in ("mean speedup", "fast_", "Hardware limits", "roofline", "solution ms"))
    assert "No speedup on the CPU" in read.text and "which do not predict a GPU's" in read.text


def test_levels_have_lines_in_the_summary_and_a_filter() -> None:
    read = Reader(page([result("p/s", level=1), result("q/s", level=2)], "levels"))
    assert "s (level 1)" in read.text and "s (level 2)" in read.text
    assert ("select", {"data-column": "level"}) in read.elements
    one = Reader(page([result("p/s", level=1)], "one level"))
    assert "(level" not in one.text and one.count("select") == 0


def test_a_long_reason_is_cut_below_its_row_and_whole_in_the_details() -> None:
    reason = "\n".join(f"error {number}" for number in range(30))
    shown, _, details = page([result("p/s", Verdict.BUILD_FAILED, reason=reason)], "long").partition("<noscript>")
    assert "error 11" in shown and "error 12" not in shown and "error 29" in details


def test_a_failure_that_repeats_at_another_shape_is_told_once() -> None:
    failed = [result("p/s", Verdict.WRONG, reason=f"call {number} (inputs as drawn): {number} of 9 elements differ",
                     shape=shape) for number, shape in enumerate(("small", "odd"), 1)]
    read = Reader(page([*failed, result("q/s", Verdict.WRONG, reason="3 of 9 elements differ")], "failed"))
    assert read.text.count("as at the shape odd") == 1
    assert "as at the shape" not in Reader(page(failed[:1], "failed")).text


def test_the_notes_of_what_passed_are_in_its_details() -> None:
    made = page([result("p/s", Verdict.PASSED, check=check(notes=("a note to find",)))], "passed")
    before, _, details = made.partition('class="parts"')
    assert "a note to find" in details and "a note to find" not in before


def test_a_page_says_where_its_results_come_from() -> None:
    assert "nightly.jsonl of 2026-01-02" in page([result("p/s")], "passed", files="nightly.jsonl of 2026-01-02")


def test_a_page_says_what_changed_since_an_earlier_run() -> None:
    before = [result("p/s", speedup=2.0), result("q/s", speedup=2.0), result("gone/s", speedup=2.0)]
    after = [result("p/s", speedup=1.0), result("q/s", speedup=2.0)]
    made = page(after, "changed", before=("monday.jsonl", compare(before, after)))
    read = Reader(made)
    assert read.faults() == []
    changes = Reader(made.partition('<section id="changes">')[2].partition("</section>")[0]).text.split("\n")
    assert "Changes since monday.jsonl" in changes
    assert [line for line in changes if line in ("gone", "slower", "p/s", "q/s", "gone/s")] == [
        "gone", "gone/s", "slower", "p/s"]
    assert 'id="r1" data-group="0" data-verdict="passed" data-level="" data-shape="full" data-device="cuda:0" ' \
        'data-change="slower"' in made
    assert "0.500 [0.490, 0.510] of the speedup before, which was 2.00 [1.98, 2.02]" in read.text
    assert read.text.count("of the speedup before") == 1  # not of the row that did not change


def test_a_new_row_is_marked() -> None:
    made = page([result("p/s", speedup=2.0)], "new", before=("monday.jsonl", compare([], [result("p/s", speedup=2.0)])))
    assert made.partition('class="row"')[2].count('<span class="change new">new</span>') == 1


def test_a_source_is_shown_if_given() -> None:
    results = [result("p/a", speedup=2.0), result("p/b", speedup=2.0)]
    assert "def forward" not in Reader(page(results, "without")).text
    assert Reader(page(results, "with", {"p/b": "def forward(self): ..."})).text.count("def forward") == 1


def test_marks_in_charts_name_their_rows() -> None:
    made = page(thirty(), "links")
    rows = dict(re.findall(r'<tbody id="(r\d+)".*?<h3>(.*?)</h3>', made, re.DOTALL))
    marks = re.findall(r'data-row="(r\d+)"><title>([^\n<]*)\n', made)
    assert len(marks) == 2 * (22 + 12)  # shares and points of the roofline, wide and narrow
    assert all(rows[target] == label for target, label in marks)
    assert made.count("<title>") == 1 + len(marks)  # the page's title and those of the marks


def test_a_page_of_thirty_results_is_small() -> None:
    assert len(page(thirty(), "size").encode()) < 500_000


@pytest.mark.parametrize("package", ["jinja2", "pygments"])
def test_the_error_for_a_missing_package_says_what_to_install(package: str) -> None:
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from inlinebench.errors import UsageError\nfrom inlinebench.report.formats.html import page\n"
        "try:\n    page([], 't')\nexcept UsageError as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told == f"HTML pages need {package}, which is not installed; run pip install 'inlinebench[report]'\n"
