# generator fn consumed

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    def g():
        for i in range(3):
            yield x * i
    return sum(g())


compiled = torch.compile(f)
compiled(X)
