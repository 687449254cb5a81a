# numpy compute then from_numpy

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    a = x.numpy() * 2
    return torch.from_numpy(a) + 1


compiled = torch.compile(f)
compiled(X)
