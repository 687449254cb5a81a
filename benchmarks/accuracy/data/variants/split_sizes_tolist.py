# split(sizes.tolist())

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x, s):
    return torch.split(x, s.tolist())[0] + 1


compiled = torch.compile(f)
compiled(X, torch.tensor([1, 1]))
