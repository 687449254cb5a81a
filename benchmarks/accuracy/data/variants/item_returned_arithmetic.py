# .item() returned arithmetic

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    s = x.sum().item()
    return x * s


compiled = torch.compile(f)
compiled(X)
