# functools.partial

import functools
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return functools.partial(torch.add, x)(x)


compiled = torch.compile(f)
compiled(X)
