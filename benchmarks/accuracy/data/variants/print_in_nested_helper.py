# print in nested helper

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    def h(v):
        print("h")
        return v + 1
    return h(x) * 2


compiled = torch.compile(f)
compiled(X)
