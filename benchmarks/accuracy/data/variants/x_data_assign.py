# x.data assign

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    y.data = y.data + 1
    return y


compiled = torch.compile(f)
compiled(X)
