# open write file

import os
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x * 2
    with open(os.devnull, "w") as fh:
        fh.write("x")
    return y + 1


compiled = torch.compile(f)
compiled(X)
