# assert torch.allclose

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    assert torch.allclose(x, x), "bad"
    return x + 1


compiled = torch.compile(f)
compiled(X)
