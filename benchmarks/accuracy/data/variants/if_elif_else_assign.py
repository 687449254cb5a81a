# if/elif/else assign

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if x.sum() > 100:
        y = x + 1
    elif x.sum() > 50:
        y = x - 1
    else:
        y = x * 3
    return y * 2


compiled = torch.compile(f)
compiled(X)
