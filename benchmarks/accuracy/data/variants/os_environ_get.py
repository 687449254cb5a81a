# os.environ.get

import os
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if os.environ.get("FOO_BAR", "0") == "1":
        return x
    return x + 1


compiled = torch.compile(f)
compiled(X)
