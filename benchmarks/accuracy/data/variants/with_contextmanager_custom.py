# with @contextmanager custom

import contextlib
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@contextlib.contextmanager
def gcm():
    yield 2


def f(x):
    with gcm() as k:
        return x * k


compiled = torch.compile(f)
compiled(X)
