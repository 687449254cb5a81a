# finally

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    try:
        y = x * 2
    finally:
        z = 1
    return y + z


compiled = torch.compile(f)
compiled(X)
