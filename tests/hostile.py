"""Foreign texts that terminals, CI services, spreadsheets or browsers would obey, and how to find one in an output."""

from __future__ import annotations

import re
import unicodedata

from inlinebench.results.result import Build, Element, Environment, Kernels, KernelShare, Result, Verdict
from inlinebench.results.times import Baseline, GpuState, Roofline, Spread, Timing

from .report.samples import check, mismatch

TEXTS = (
    "::error file=a.py::forged", "x\n::stop-commands::token", "x\r\n  \t::add-mask::x", "\u3000::group::x", "::",
    "##[group]x", "x ##[error]forged", "###[command]x", "##vso[task.setvariable variable=a]b", "a ##VSO[task.x]",
    "##teamcity[buildStatus status='SUCCESS']", "section_start:1:x\r\x1b[0Kforged", "[[ATTACHMENT|/etc/passwd]]",
    "[[[attachment|/etc/passwd]]]", "\x1b[2J\x1b[5Aforged", "\x1b]0;title\x07\x1b]8;;http://x\x1b\\", "\x1bc", "\x1b",
    "\x9b2K\x9d0;title\x9c", "wrong\rpassed", "wrong\b\b\b\b\bpassed", "\u202egnp.\u2066x\u2069\u200f\u200b", "\ufeffx",
    "\udcff\ud800", "a\x00b", "a\u2028::error::b\u2029::error::c\x85::error::d\x0b::error::e\x0c\x1c::error::f",
    "x" * 100_000, "a\tb\n\tc", "", " \n ", "=1+1", "@SUM(A1)", "\t=1", "| a | b |\n| --- | --- |", "`x`", "</pre>",
    "<script>alert(1)</script>", "[a](http://b) @everyone &lt; \\", "% %0A::error::x", "--- x\n+++ x", "{{ 1 }}",
)
_OBEYED = re.compile(r"^\s*::(?!(?:error|warning) (?:file|title)=)|##(?:vso|teamcity)?\[|\[\[ATTACHMENT\|",
                     re.IGNORECASE | re.MULTILINE)
"""What a CI service would obey, except for the annotations that the harness writes itself."""


def faults(output: str) -> list[str]:
    """Returns the commands and the control characters in an output."""
    hidden = [letter for letter in output if not (letter.isprintable() or unicodedata.category(letter) == "Zs")]
    return [*_OBEYED.findall(output), *(letter for letter in hidden if letter != "\n")]


def results(text: str) -> list[Result]:
    """Returns results that have this text in every field that can hold it."""
    one = Spread(1.0, 0.9, 1.1, 20)
    gpu = GpuState(one, one, 54.0, 50, throttled=(text,))
    timing = Timing(one, one, Spread(1.0, 0.9, 1.1), wall_ms=one, baselines=(Baseline(text, one, one),), flags=(text,),
                    stopped_by=text, roofline=Roofline(1000, 4000, 0.2, 0.3, "compute"), gpu=gpu,
                    gpu_unknown=text)
    known = {
        "check": check(oracle=text, weights=text, notes=(text,)), "build": Build(1.0, False, text), "log": text,
        "kernels": Kernels(0.5, (KernelShare(text, text, 1.0, 0.5),)), "protections": (text,), "key": text,
        "environment": Environment(text, text, text, text, text, text, text),
    }
    element = Element((2, 0), text, text)
    found = mismatch(what=text, dtype=text, patterns=(text,), call=text, variant=text, worst=element,
                     first=(element, *mismatch().first[1:]))
    reason = f"{text}\n    3 | {text}\n      | ^" if text else "because"
    failed = [Result(text, text, text, "cuda:0", verdict, reason, **known)  # type: ignore[arg-type]
              for verdict in Verdict if verdict is not Verdict.PASSED]
    return [
        Result(text, text, text, text, Verdict.PASSED, timing=timing, **known),  # type: ignore[arg-type]
        Result(text, f"{text}2", text, "cuda:0", Verdict.PASSED, timing=timing,
               **{**known, "environment": Environment(text, text, f"another {text}")}),  # type: ignore[arg-type]
        Result(text, text, "odd", text, Verdict.WRONG, reason, mismatch=found, **known),  # type: ignore[arg-type]
        *failed,
    ]
