# arange(t.item())

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
IDS = torch.tensor([2, 0, 1])


def f(x, ids):
    return torch.arange(ids.max().item()) * 2


compiled = torch.compile(f)
compiled(X, IDS)
