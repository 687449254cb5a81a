# torch.tensor(list of 0-d tensors)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return torch.tensor([x[0, 0], x[0, 1]]) + 1


compiled = torch.compile(f)
compiled(X)
