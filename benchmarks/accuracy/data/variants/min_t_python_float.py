# min(t, python float)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return min(x.sum(), 3.0) + x


compiled = torch.compile(f)
compiled(X)
