# print in try/except

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    try:
        print("y")
        z = y + 1
    except ValueError:
        z = y
    return z + 1


compiled = torch.compile(f)
compiled(X)
