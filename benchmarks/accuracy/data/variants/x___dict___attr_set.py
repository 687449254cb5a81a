# x.__dict__ attr set

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    y.tag = 5
    return y + y.tag


compiled = torch.compile(f)
compiled(X)
