"""The HTML page of `inlinebench.report.formats.html`: details, charts, template and script."""
