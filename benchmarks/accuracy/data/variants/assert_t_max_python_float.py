# assert t.max() <= python float

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    assert x.max() <= 100.0, "bad"
    return x + 1


compiled = torch.compile(f)
compiled(X)
