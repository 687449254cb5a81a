# input generator rand

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
GEN = torch.Generator()


def f(x):
    return x + torch.rand(3, generator=GEN)


compiled = torch.compile(f)
compiled(X)
