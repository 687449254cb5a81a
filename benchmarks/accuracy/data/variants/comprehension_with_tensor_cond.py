# comprehension with tensor cond

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    o = [r for r in x if r.sum() > 0]
    return torch.stack(o)


compiled = torch.compile(f)
compiled(X)
