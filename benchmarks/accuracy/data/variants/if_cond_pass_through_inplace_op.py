# if cond: pass-through inplace op

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 1
    if y.max() > 3:
        y.clamp_(max=3)
    return y * 2


compiled = torch.compile(f)
compiled(X)
