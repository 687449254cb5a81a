# isinstance custom

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Foo:
    def __init__(self):
        self.v = 3


def f(x, o):
    if isinstance(o, Foo):
        return x + o.v
    return x


compiled = torch.compile(f)
compiled(X, Foo())
