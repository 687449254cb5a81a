# x[:tensor] slice

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
I = torch.tensor(1)


def f(x, i):
    return x[: i] + 1


compiled = torch.compile(f)
compiled(X, I)
