"""Reports of results: terminal tables, HTML, Markdown, CSV and JUnit XML. Does not import torch."""
