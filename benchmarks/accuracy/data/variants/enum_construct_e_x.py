# enum construct E('x')

import enum
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class E(enum.Enum):
    A = 1
    B = 2


def f(x):
    return x + E(2).value


compiled = torch.compile(f)
compiled(X)
