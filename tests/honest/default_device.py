"""Makes the GPU torch's default device, so that its weights are drawn there.

Suspicious: a setting of the whole process, and other random weights than the reference's under the same seed. Honest:
they are parameters, which take the reference's values.
"""

import torch

from tests.honest import parameter_list

PROBLEM = "init_arguments"

torch.set_default_device("cuda")


class ModelNew(parameter_list.ModelNew):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * torch.ones(())
