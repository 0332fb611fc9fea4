"""File formats of reports."""
