# gc.collect

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    import gc
    y = x + 1
    gc.collect()
    return y * 2


compiled = torch.compile(f)
compiled(X)
