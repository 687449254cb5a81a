# or over tensors (value)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    c = (x > 0).all() or (x < 10).all()
    return torch.where(c, x, -x)


compiled = torch.compile(f)
compiled(X)
