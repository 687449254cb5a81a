# unique

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return torch.unique(x) * 2


compiled = torch.compile(f)
compiled(X)
