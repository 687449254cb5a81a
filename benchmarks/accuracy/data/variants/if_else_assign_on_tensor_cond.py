# if/else assign on tensor cond

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y * 2


compiled = torch.compile(f)
compiled(X)
