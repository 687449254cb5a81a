# print f-string .item()

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    print(f"y={y.mean().item():.3f}")
    return y + 1


compiled = torch.compile(f)
compiled(X)
