# breakpoint() [PYTHONBREAKPOINT=0]

import os
import torch

os.environ["PYTHONBREAKPOINT"] = "0"
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x + 1
    breakpoint()
    return y * 2


compiled = torch.compile(f)
compiled(X)
