# torch.manual_seed

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    torch.manual_seed(1)
    return x + torch.rand(3)


compiled = torch.compile(f)
compiled(X)
