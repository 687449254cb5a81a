# torch.compiler.disable fn

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@torch.compiler.disable
def disabled(x):
    return x * 2


def f(x):
    return disabled(x) + 1


compiled = torch.compile(f)
compiled(X)
