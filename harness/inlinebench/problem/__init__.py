"""One problem at one shape: loads its file, draws its inputs, and probes its reference."""
