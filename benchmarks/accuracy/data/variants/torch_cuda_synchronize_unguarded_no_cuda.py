# torch.cuda.synchronize (unguarded; no cuda)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x + 1
    torch.cuda.synchronize()
    return y * 2


compiled = torch.compile(f)
compiled(X)
