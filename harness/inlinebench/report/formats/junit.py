"""Results as JUnit XML, which CI services display: one test case for each result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from inlinebench.errors import CannotWrite, UsageError
from inlinebench.foreign import first_line, message, one_line, quotation
from inlinebench.results.result import Result, Verdict


def check_place(path: Path) -> None:
    """Checks, before the run, that `write` can write to `path`. Leaves no file behind.

    Raises UsageError if it cannot.
    """
    part = _part(path)
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"--junit {path}: is not a regular file; name a file that may be overwritten")
        part.touch()
        part.unlink()
    except OSError as error:
        raise UsageError(
            f"--junit {path}: can't be written ({error.strerror}); name a file in a folder that you can write to"
        ) from error


def write(results: Sequence[Result], path: Path) -> None:
    """Writes all results to `path`, replacing an existing file atomically.

    Raises CannotWrite if the file cannot be written; an existing file is then unchanged.
    """
    part = _part(path)
    try:
        ElementTree.ElementTree(_document(results)).write(part, encoding="utf-8", xml_declaration=True)
        part.replace(os.path.realpath(path))
    except OSError as error:
        raise CannotWrite(f"--junit {path}: can't be written ({error.strerror}); free some space, or name another file"
                          ) from error
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    """Returns the path of the temporary file, in the same folder as the final file, so that it can be renamed."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.{os.getpid()}.part")


def _document(results: Sequence[Result]) -> ElementTree.Element:
    outcomes = [_outcome(result.verdict) for result in results]
    counts = {
        "time": _seconds(sum(result.seconds or 0.0 for result in results)),
        "tests": str(len(results)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "inlinebench", **counts})
    for result in results:
        _add_case(suite, result)
    ElementTree.indent(suites)
    return suites


def _add_case(suite: ElementTree.Element, result: Result) -> None:
    case = ElementTree.SubElement(suite, "testcase", {
        "classname": one_line(result.problem), "name": one_line(f"{result.solution}[{result.shape}]"),
        "time": _seconds(result.seconds or 0.0)})
    if result.verdict is not Verdict.PASSED:
        facts = {"type": str(result.verdict), "message": f"{result.verdict}: {first_line(result.reason)}"}
        failure = ElementTree.SubElement(case, _outcome(result.verdict), facts)
        failure.text = f"{result.verdict}: {message(result.reason)}"
    if result.log:
        ElementTree.SubElement(case, "system-out").text = quotation(result.log)


def _outcome(verdict: Verdict) -> str:
    """Returns the element of a verdict. A passed test case has none."""
    if verdict is Verdict.INTERNAL_ERROR:
        return "error"
    return "failure" if verdict.is_failure else "skipped" if verdict is not Verdict.PASSED else ""


def _seconds(time: float) -> str:
    return f"{time:.3f}"
