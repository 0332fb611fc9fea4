"""Foreign text is quoted wherever it is shown, and honest text stays readable."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.audit.records import Audit, Flaw
from inlinebench.audit.text import summary, text_of
from inlinebench.builds.report import BuildReport, State
from inlinebench.catalog import Catalog, Problem, Solution
from inlinebench.cli.exits import say
from inlinebench.cli.github import annotation
from inlinebench.foreign import BAR, block, first_line, inert_json, lines, message, one_line, quotation
from inlinebench.options import Options
from inlinebench.report import changes
from inlinebench.report.comparison import compare
from inlinebench.report.formats import csv_file, html, junit, markdown
from inlinebench.report.terminal.builds import table
from inlinebench.report.terminal.feedback import feedback
from inlinebench.report.terminal.head_to_head import head_to_head
from inlinebench.report.terminal.listing import listing
from inlinebench.report.terminal.outputs import report
from inlinebench.report.terminal.progress import Progress
from inlinebench.results.result import Result, Verdict
from inlinebench.results.result_json import from_json, to_json

from .hostile import TEXTS, faults, results

_parts = [*"#[:|\\ \t\r\n\x1b\x85\u2028\u3000é", "vso", "ATTACHMENT"]
_texts = st.text() | st.lists(st.sampled_from(_parts)).map("".join)


def progress(text: str, found: list[Result]) -> str:
    stream = io.StringIO()
    with Progress(stream=stream) as shown:
        shown.phase(text)
        shown.start(len(found))
        for each in found:
            shown.line(f"--- {each.problem}/{each.solution} {each.shape}\n{each.log}")  # as --verbose does
            shown.finished(each)
    return stream.getvalue()


def junit_file(text: str, found: list[Result]) -> str:
    """Returns the file, and what a reader gets from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.xml")
        junit.write(found, path)
        read = [words for each in ElementTree.parse(path).iter() for words in (*each.attrib.values(), each.text or "")]
        return "\n".join([path.read_text(encoding="utf-8"), *read])


def csv_text(text: str, found: list[Result]) -> str:
    written = csv_file.table(found)
    cells = [cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in cells)
    return "\n".join([written, *cells])


def builds(text: str, found: list[Result]) -> str:
    return table([BuildReport(each.problem, each.solution, State.FAILED, each.reason) for each in found])


def folders(text: str, found: list[Result]) -> str:
    path = Path("x.py")
    problems = [Problem(text, path, shapes=(text,), tags=(text,), draws=("dropout",)),
                Problem(f"{text}2", path, error=text), Problem(f"{text}3", path, derived=({text: text},))]
    solutions = tuple(Solution(name, text, path) for name in (text, f"{text}2", f"{text}4"))
    return listing(Catalog({each.name: each for each in problems}, solutions), Options())


def audits(text: str, found: list[Result]) -> str:
    finding = Flaw("does not run", True, f"ValueError: {text} {'word ' * 30} {text}")
    audit = Audit(text, text, (finding,), 1.0, {"N": text})
    return "\n".join([text_of(audit), summary([audit]), inert_json(json.dumps(audit.to_json()))])


def annotations(text: str, found: list[Result]) -> str:
    path = Path("/", text[:200].replace("\0", "").encode(errors="replace").decode())
    return "\n".join(annotation(each, path, Path("/")) for each in found if each.verdict is not Verdict.PASSED)


PLACES: dict[str, Callable[[str, list[Result]], str]] = {
    "table": lambda text, found: report(found, verbose=True, kernels=True),
    "feedback": lambda text, found: "\n".join(map(feedback, found)),
    "progress": progress,
    "head to head": lambda text, found: head_to_head(found, [text, f"{text}2"]),
    "builds": builds,
    "list": folders,
    "audit": audits,
    "annotations": annotations,
    "job summary": lambda text, found: markdown.table(found),
    "Markdown": lambda text, found: markdown.document(found, text),
    "JUnit": junit_file,
    "CSV": csv_text,
    "changes": lambda text, found: changes.text(compare(found, found[1:], any_gpu=True), everything=True),
    "changes as a comment": lambda text, found: changes.markdown(compare(found, found, any_gpu=True), everything=True),
    "JSON": lambda text, found: "\n".join(map(to_json, found)),
    "messages": lambda text, found: message(f"inlinebench: {text}: no such file; {text}"),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_output_has_a_control_character_or_a_line_that_a_ci_service_obeys(place: str) -> None:
    for text in TEXTS:
        assert faults(PLACES[place](text, results(text))) == [], text[:100]


def test_a_page_has_no_control_character_and_no_command() -> None:
    """Its lines may begin with foreign text, as those of a source do: the elements delimit it."""
    for text in TEXTS:
        found = results(text)
        made = html.page(found, text, {f"{text}/{text}": text}, (text, compare(found[2:], found, any_gpu=True)))
        assert {fault.strip() for fault in faults(made)} <= {"::"}, text[:100]


def test_faults_are_found() -> None:
    for text in ("a\n ::error::b", "x ##[group]", "##vso[a.b]", "[[ATTACHMENT|x]]", "\x1b", "a\rb", "\x85", "\u202e"):
        assert faults(text)
    assert faults("::error title=a::b\nAt ::at::Tensor, é\u00a0漢\u3000字") == []


def test_messages_on_stderr_are_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    say("inlinebench run: \x1b[2Ja\n::error::b\r\n\nc")
    assert capsys.readouterr() == ("", "inlinebench run: \\x1b[2Ja\n  | ::error::b\n  |\n  | c\n")


def test_result_files_keep_every_text_exactly() -> None:
    for text in TEXTS:
        assert [from_json(to_json(each)) for each in results(text)] == results(text)


HONEST = (
    "cuda_sources:5:14: error: \u2018y\u2019 was not declared\n    5 |     out[i] = y[i];  // größer als 漢字\n"
    "      |              ^",
    'Traceback (most recent call last):\n  File "s.py", line 8, in forward\n    raise ValueError("no\u00a0tile")\n'
    "ValueError: no\u00a0tile",
    "::at::Tensor x = ::at::zeros({1});\n#define AT(x) x##_data[0]\n## A [link](b)\nint m[[2]];",
    "ptxas info    : Used 62 registers\n\n  0% \u3000 ¿qué? 🎉 ½ µs ≤ Σ",
)


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_is_unchanged_behind_the_bar(text: str) -> None:
    assert lines(text) == text.split("\n") and block(text) == text
    assert quotation(text) == "\n".join(f"{BAR}{line}".rstrip(" ") for line in text.split("\n"))
    assert message(f"p/s: wrong: {text}").split("\n")[0] == f"p/s: wrong: {text}".split("\n")[0]


def test_a_caret_stays_below_its_column() -> None:
    source, caret = quotation("\tint é = f(x);\r\n\t        ^\r\n").split("\n")
    assert source.index("f") == caret.index("^") == len(BAR) + 16


def test_what_is_shown_names_the_character() -> None:
    assert one_line("a\nb\t\x1b[2J\x9b\u202e\ud800\U000e0041 é") == r"a\nb\t\x1b[2J\x9b\u202e\ud800\U000e0041 é"
    assert one_line(" ::a ##[b] [[ATTACHMENT|c]]") == r"\x3a:a \x23#[b] \x5b[ATTACHMENT|c]]"
    assert one_line("x" * 600) == "x" * 499 + "…" and len(one_line("\x1b" * 600)) == 500
    assert first_line("\n \t\n  two \t words\nmore") == "two      words"


@given(_texts)
def test_whatever_the_text_no_line_begins_with_it_and_nothing_hidden_is_left(text: str) -> None:
    assert faults(one_line(text)) == faults(first_line(text)) == faults(message(text)) == []
    assert faults(quotation(text)) == [] and "\n" not in one_line(text)
    assert all(line.startswith(BAR.rstrip()) for line in quotation(text).split("\n"))


@given(_texts)
def test_a_text_that_is_shown_twice_does_not_change(text: str) -> None:
    for shown in (one_line, first_line, block):
        assert shown(shown(text)) == shown(text)


@given(_texts)
def test_inert_json_has_the_same_value(text: str) -> None:
    written = inert_json(json.dumps(text))
    assert json.loads(written) == text and faults(written) == []
