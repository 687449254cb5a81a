# if loss > 0 python float

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    loss = x.mean()
    if loss > 0.0:
        loss = loss * 2
    return loss


compiled = torch.compile(f)
compiled(X)
