# functools.lru_cache call

import functools
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@functools.lru_cache(None)
def cached_scale(n):
    return n * 2


def f(x):
    return x * cached_scale(3)


compiled = torch.compile(f)
compiled(X)
