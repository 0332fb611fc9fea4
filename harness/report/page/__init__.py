"""What `harness.report.html` is made of: rows and their details, charts, and the page's template, style and script."""
