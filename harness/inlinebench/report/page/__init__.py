"""The page of `inlinebench.report.formats.html`: rows with their details, charts, and the page's template and script."""
