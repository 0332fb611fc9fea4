"""Processes that run a solution or a probe: started by a forkserver, spoken to in frames."""
