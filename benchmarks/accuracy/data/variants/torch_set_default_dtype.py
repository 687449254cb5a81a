# torch.set_default_dtype

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    torch.set_default_dtype(torch.float32)
    return x + 1


compiled = torch.compile(f)
compiled(X)
