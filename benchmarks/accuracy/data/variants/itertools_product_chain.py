# itertools.product/chain

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    import itertools
    for i, j in itertools.product([1, 2], [3]):
        x = x + i * j
    return x


compiled = torch.compile(f)
compiled(X)
