# globals()

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
SCALE = 3


def f(x):
    d = globals()
    return x + d["SCALE"]


compiled = torch.compile(f)
compiled(X)
