# if random.random() < p (layerdrop)

import random
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if random.random() < -1.0:
        x = x * 2
    return x + 1


compiled = torch.compile(f)
compiled(X)
