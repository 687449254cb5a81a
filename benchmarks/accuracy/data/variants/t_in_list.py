# t in list

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
I = torch.tensor(1)


def f(x, i):
    if i in [1, 2]:
        return x + 1
    return x


compiled = torch.compile(f)
compiled(X, I)
