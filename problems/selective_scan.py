"""Selective scan: the recurrence of a state space model whose steps depend on the input, with its gate.

    delta = softplus(dt + dt_bias)
    h[t, n] = exp(delta[t] * A[n]) * h[t - 1, n] + delta[t] * B[t, n] * x[t],    A = -exp(A_log),    h[-1, n] = 0
    out[t] = (sum over n of C[t, n] * h[t, n] + D * x[t]) * silu(z[t]),    silu(z) = z / (1 + exp(-z))

for each sequence of the batch and each channel, which are left out above:

    x, dt, z:   (BATCH, LENGTH, CHANNELS)  float32
    B, C:       (BATCH, LENGTH, STATES)    float32    shared by all channels
    A_log:      (CHANNELS, STATES)         float32
    D, dt_bias: (CHANNELS,)                float32
    out:        (BATCH, LENGTH, CHANNELS)  float32

The reference computes factors and increments of all steps at once, and then goes through the steps one by one.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 3
TAGS = ("scan", "fusion", "memory-bound")

BATCH = 8
LENGTH = 512
CHANNELS = 4096
STATES = 16

# "odd": primes, so that no block of channels, no round of steps and no vector of states is full.
SHAPES = {
    "small": {"BATCH": 2, "LENGTH": 40, "CHANNELS": 136, "STATES": 8},
    "odd": {"BATCH": 3, "LENGTH": 37, "CHANNELS": 67, "STATES": 13},
}


class Model(nn.Module):
    """A state space model's recurrence over time, with steps that depend on the input, and a gate."""

    def __init__(self, channels: int, states: int) -> None:
        super().__init__()
        # Slow and fast states, and steps of about 0.05: what came long ago counts, and doesn't blow up.
        self.A_log = nn.Parameter(torch.randn(channels, states))
        self.D = nn.Parameter(torch.randn(channels))
        self.dt_bias = nn.Parameter(torch.randn(channels) - 3.0)

    def forward(
        self, x: torch.Tensor, dt: torch.Tensor, B: torch.Tensor, C: torch.Tensor, z: torch.Tensor
    ) -> torch.Tensor:
        """Return the gated result, of the shape of x, dt and z, (batch, length, channels)."""
        delta = functional.softplus(dt + self.dt_bias)
        factors = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.A_log))
        states = (delta * x).unsqueeze(-1) * B.unsqueeze(2)  # increments, which become the states step by step
        for step in range(1, x.shape[1]):
            states[:, step].addcmul_(factors[:, step], states[:, step - 1])
        y = (states @ C.unsqueeze(-1)).squeeze(-1)
        return (y + self.D * x) * functional.silu(z)


def get_inputs() -> list[torch.Tensor]:
    x, dt, z = (torch.randn(BATCH, LENGTH, CHANNELS) for _ in range(3))
    B, C = (torch.randn(BATCH, LENGTH, STATES) for _ in range(2))
    return [x, dt, B, C, z]


def get_init_inputs() -> list[object]:
    return [CHANNELS, STATES]


def work() -> dict[str, int]:
    """Inputs and weights read once, the result written once; six operations a state and step, with the exponential."""
    steps = BATCH * LENGTH
    values = 4 * steps * CHANNELS + 2 * steps * STATES + (STATES + 2) * CHANNELS
    return {"bytes": 4 * values, "flops": 6 * steps * CHANNELS * STATES}
