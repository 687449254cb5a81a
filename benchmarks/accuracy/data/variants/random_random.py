# random.random

import random
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    r = random.random()
    return x * r


compiled = torch.compile(f)
compiled(X)
