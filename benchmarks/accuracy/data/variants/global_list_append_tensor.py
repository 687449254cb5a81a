# global list append tensor

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
GLIST = []


def f(x):
    GLIST.append(x * 2)
    return x + 1


compiled = torch.compile(f)
compiled(X)
