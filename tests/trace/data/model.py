"""The program whose log is beside it: `TORCH_LOGS=graph_breaks python model.py 2> model-2.13.log`."""

import torch
from torch import nn


def report(x):
    print(
        "mean",
        x.mean(),
    )
    return x


class Branch(nn.Module):
    def forward(self, x):
        if (
            x.sum()
            > 0
        ):
            print("positive")
            x = x + 1
        return report(x)


class Loop(nn.Module):
    def forward(self, x):
        for step in range(2):
            x = x * 2
            print("step", step)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = Branch()
        self.loop = Loop()

    def forward(self, x):
        x = self.branch(torch.relu(x))
        x = x * x.sum().item()
        parts = [part for part in (x, x + 1) if part.sum() > 0]
        if x.shape[0] > 100:
            print("large")
        return self.loop(parts[0])


if __name__ == "__main__":
    torch.compile(Net(), backend="eager")(torch.ones(3))
