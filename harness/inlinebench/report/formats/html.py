"""Results as one HTML page that needs nothing beside it: no server, no network, and no JavaScript to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from inlinebench.records.errors import UsageError
from inlinebench.records.result import Result

NO_SOURCES: Mapping[str, str] = MappingProxyType({})
_PACKAGES = ("jinja2", "markupsafe", "vl_convert")


def page(results: Sequence[Result], title: str, sources: Mapping[str, str] = NO_SOURCES) -> str:
    """The page, to be written as UTF-8. `sources` has solutions' source texts by `problem/solution`.

    Raises UsageError where the packages that it is made with are missing.
    """
    try:
        from inlinebench.report.page.charts import figures
        from inlinebench.report.page.render import render
        from inlinebench.report.rows import arrange
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise UsageError(
            f"an HTML page is made with {error.name}, which isn't installed: pip install 'inlinebench[report]'"
        ) from error
    table = arrange(results)
    return render(table, title, sources, figures(table.rows))
