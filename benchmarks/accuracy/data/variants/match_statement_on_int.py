# match statement on int

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x, k):
    match k:
        case 1:
            return x
        case 2:
            return x + 2
    return x


compiled = torch.compile(f)
compiled(X, 2)
