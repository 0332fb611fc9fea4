"""The page of `inlinebench.report.formats.html`: rows, details, charts, and the page's template and script."""
