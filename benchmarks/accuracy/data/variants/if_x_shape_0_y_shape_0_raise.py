# if x.shape[0] != y.shape[0]: raise

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
Y = torch.tensor([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])


def f(x, y):
    if x.shape[0] != y.shape[0]:
        raise ValueError("shape")
    return x + y


compiled = torch.compile(f)
compiled(X, Y)
