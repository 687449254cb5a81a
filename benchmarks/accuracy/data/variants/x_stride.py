# x.stride()

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return x + x.stride(0)


compiled = torch.compile(f)
compiled(X)
