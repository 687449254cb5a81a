# if cond: x = f; (no else) then used

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if x.max() > 3:
        x = x.clamp(max=3)
    return x * 2


compiled = torch.compile(f)
compiled(X)
