"""The orchestrator: plans evaluations, runs judges, collects results. Imports no torch."""
