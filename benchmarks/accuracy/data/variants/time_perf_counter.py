# time.perf_counter

import time
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    t = time.perf_counter()
    return x * 2


compiled = torch.compile(f)
compiled(X)
