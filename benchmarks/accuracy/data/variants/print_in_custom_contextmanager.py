# print in custom contextmanager

import contextlib
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    @contextlib.contextmanager
    def cm():
        yield
    with cm():
        y = x * 2
        print("y")
        z = y + 1
    return z + 1


compiled = torch.compile(f)
compiled(X)
