# *args + zip/enumerate/map

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x, *a):
    for i, (p, q) in enumerate(zip([x, x], [1, 2])):
        x = x + p * q
    return sum(map(lambda v: v * 2, [x, x]))


compiled = torch.compile(f)
compiled(X)
