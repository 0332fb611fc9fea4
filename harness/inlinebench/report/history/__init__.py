"""The results of many runs: what changed between which runs."""
