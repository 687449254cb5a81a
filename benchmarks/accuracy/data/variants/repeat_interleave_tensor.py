# repeat_interleave tensor

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x, r):
    return torch.repeat_interleave(x, r, dim=0) * 2


compiled = torch.compile(f)
compiled(X, torch.tensor([1, 2]))
