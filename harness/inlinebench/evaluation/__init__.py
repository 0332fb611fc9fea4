"""One evaluation of one solution: its calls, what is checked, and what is timed."""
