# copy.copy list

import copy
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    d = copy.copy([1, 2])
    return x + d[0]


compiled = torch.compile(f)
compiled(X)
