"""Results as one self-contained HTML page, which can be read without network and without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from inlinebench.records.errors import UsageError
from inlinebench.records.result import Result

NO_SOURCES: Mapping[str, str] = MappingProxyType({})
_PACKAGES = ("jinja2", "markupsafe", "vl_convert")


def page(results: Sequence[Result], title: str, sources: Mapping[str, str] = NO_SOURCES) -> str:
    """Returns the page, to be encoded as UTF-8. `sources` has solutions' source texts by `problem/solution`.

    Raises UsageError if a package for HTML pages is not installed.
    """
    try:
        from inlinebench.report.page.charts import figures
        from inlinebench.report.page.render import render
        from inlinebench.report.rows import arrange
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise UsageError(
            f"HTML pages need {error.name}, which is not installed; run pip install 'inlinebench[report]'"
        ) from error
    table = arrange(results)
    return render(table, title, sources, figures(table.rows))
