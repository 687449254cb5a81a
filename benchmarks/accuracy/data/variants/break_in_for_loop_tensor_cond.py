# break in for loop tensor cond

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    for i in range(3):
        if x.sum() > 1000:
            break
        x = x + 1
    return x * 2


compiled = torch.compile(f)
compiled(X)
