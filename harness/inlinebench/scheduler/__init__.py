"""The scheduler: plans evaluations, runs judges, collects results. Does not import torch."""
