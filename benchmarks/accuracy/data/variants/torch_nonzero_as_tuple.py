# torch.nonzero as_tuple

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return torch.nonzero(x > 2, as_tuple=True)[0] + 1


compiled = torch.compile(f)
compiled(X)
