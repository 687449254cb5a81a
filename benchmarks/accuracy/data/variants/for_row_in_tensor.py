# for row in tensor

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    o = []
    for r in x:
        o.append(r * 2)
    return torch.stack(o)


compiled = torch.compile(f)
compiled(X)
