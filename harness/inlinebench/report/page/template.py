"""The template engine of the pages.

Pages show untrusted text: names, reasons, logs, sources. The template engine sanitizes and escapes every text, no
result is embedded as data, and a Content Security Policy allows only the page's own script and style.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape

from inlinebench.foreign import block, one_line


def environment() -> jinja2.Environment:
    """Returns an environment that sanitizes and escapes every value except Markup: charts, style and script."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("inlinebench.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else block(str(value)),
    )
    made.filters |= {"breakable": _breakable, "classes": lambda change: str(change).replace(",", "").replace(" ", "-")}
    return made


def _breakable(name: object) -> Markup:
    """Returns a name that may be broken after its underscores and slashes."""
    return Markup(re.sub(r"([_/])(?=.)", r"\1<wbr>", str(escape(one_line(str(name))))))


def own(name: str) -> str:
    """Returns the text of a file of the page's: its style or script."""
    return files("inlinebench.report.page").joinpath(name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Returns the Content Security Policy: this script, this style, and no requests."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
