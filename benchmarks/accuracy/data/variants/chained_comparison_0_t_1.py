# chained comparison 0 < t < 1

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    c = 0 < x.sum() < 100
    return torch.where(c, x, -x)


compiled = torch.compile(f)
compiled(X)
