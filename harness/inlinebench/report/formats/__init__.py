"""Files that a report can be written to."""
