# logging.getLogger(...) in forward

import logging
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    lg = logging.getLogger("gm.test")
    return y + 1


compiled = torch.compile(f)
compiled(X)
