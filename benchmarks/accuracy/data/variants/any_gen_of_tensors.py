# any(gen of tensors)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if any(r.sum() > 0 for r in x):
        return x + 1
    return x


compiled = torch.compile(f)
compiled(X)
