# with torch.autocast cpu

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
    return y


compiled = torch.compile(f)
compiled(X)
