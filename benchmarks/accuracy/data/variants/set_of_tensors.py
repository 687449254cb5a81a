# set of tensors

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
Y = torch.tensor([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])


def f(x, y):
    s = {x, y}
    return x + len(s)


compiled = torch.compile(f)
compiled(X, Y)
