# f-string tensor.shape only

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    s = f"{x.shape} {x.dtype} {x.device}"
    return x + 1


compiled = torch.compile(f)
compiled(X)
