# early return on tensor cond

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


compiled = torch.compile(f)
compiled(X)
