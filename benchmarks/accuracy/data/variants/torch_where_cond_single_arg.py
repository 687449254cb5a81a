# torch.where(cond) single arg

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return torch.where(x > 2)[0] + 1


compiled = torch.compile(f)
compiled(X)
