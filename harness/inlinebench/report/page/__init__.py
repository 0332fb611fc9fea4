"""What `inlinebench.report.html` is made of: rows with their details, charts, and the page's template and script."""
