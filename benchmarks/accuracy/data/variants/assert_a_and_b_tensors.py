# assert a and b tensors

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    assert (x > 0).all() and (x < 10).all(), "bad"
    return x + 1


compiled = torch.compile(f)
compiled(X)
