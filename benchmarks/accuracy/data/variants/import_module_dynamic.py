# import_module dynamic

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    import importlib
    m = importlib.import_module("math")
    return x * m.pi


compiled = torch.compile(f)
compiled(X)
