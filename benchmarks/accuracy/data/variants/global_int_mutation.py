# global int mutation

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
GLOBAL = 0


def f(x):
    global GLOBAL
    GLOBAL += 1
    return x + 1


compiled = torch.compile(f)
compiled(X)
