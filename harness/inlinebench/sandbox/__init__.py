"""What the operating system keeps foreign code from: candidates and compilers run inside, nothing of ours does."""
