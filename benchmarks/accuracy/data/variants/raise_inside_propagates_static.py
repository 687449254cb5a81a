# raise inside, propagates (static)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x, n):
    if n > 3:
        raise ValueError("n>3")
    return x + n


compiled = torch.compile(f)
compiled(X, 5)
