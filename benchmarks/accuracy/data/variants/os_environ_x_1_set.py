# os.environ['X']='1' set

import os
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    os.environ["GM_X"] = "1"
    return x + 1


compiled = torch.compile(f)
compiled(X)
