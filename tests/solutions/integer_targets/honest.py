from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return -predictions.log_softmax(1).gather(1, targets[:, None]).mean()
