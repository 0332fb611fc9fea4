"""Results as one self-contained HTML page, which can be read without network and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from inlinebench.errors import UsageError
from inlinebench.report.comparison import ComparedRow
from inlinebench.report.history.tracks import History
from inlinebench.results.result import Result

NO_SOURCES: Mapping[str, str] = MappingProxyType({})
_PACKAGES = ("jinja2", "markupsafe", "pygments")


def page(
    results: Sequence[Result], title: str, sources: Mapping[str, str] = NO_SOURCES,
    before: tuple[str, tuple[ComparedRow, ...]] | None = None, *, files: str = "",
) -> str:
    """Returns the page, to be encoded as UTF-8. `sources` has solutions' source texts by `problem/solution`. `before`
    is the name of an earlier run, and the comparison with it. `files` says where the results come from.

    Raises UsageError if there are too many results, or if a package for HTML pages is not installed.
    """
    with _needing_packages():
        from inlinebench.report.page.charts import charts
        from inlinebench.report.page.limits import fitting
        from inlinebench.report.page.render import Since, render
        from inlinebench.report.rows import arrange
    table = arrange(fitting(results))
    return render(table, title, sources, charts(table.rows), Since(*before) if before else None, files=files)


def history_page(found: History, title: str) -> str:
    """Returns the page of a history, to be encoded as UTF-8.

    Raises UsageError if there are too many rows and runs, or if a package for HTML pages is not installed.
    """
    with _needing_packages():
        from inlinebench.report.page.history import render
        from inlinebench.report.page.limits import check_history
    check_history(found)
    return render(found, title)


@contextmanager
def _needing_packages() -> Iterator[None]:
    """Raises UsageError if a package for HTML pages cannot be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise UsageError(
            f"HTML pages need {package}, which is not installed; run pip install 'inlinebench[report]'"
        ) from error
