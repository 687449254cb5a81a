# bool mask setitem scalar

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = x.clone()
    y[y > 2] = 0.0
    return y


compiled = torch.compile(f)
compiled(X)
