"""One problem at one shape: its file, its inputs, and what a probe of its reference finds out."""
