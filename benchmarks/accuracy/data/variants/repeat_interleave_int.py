# repeat_interleave int

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return torch.repeat_interleave(x, 2, dim=0) * 2


compiled = torch.compile(f)
compiled(X)
