# time.time

import time
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    t = time.time()
    y = x * 2
    return y + 1


compiled = torch.compile(f)
compiled(X)
