# print in with no_grad

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    with torch.no_grad():
        y = x * 2
        print("y")
        z = y + 1
    return z + 1


compiled = torch.compile(f)
compiled(X)
