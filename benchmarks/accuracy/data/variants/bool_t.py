# bool(t)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    b = bool((x > 0).all())
    return x * 2 if b else x


compiled = torch.compile(f)
compiled(X)
