# print in for loop over range

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    for i in range(3):
        x = x + i
        print(i)
    return x * 2


compiled = torch.compile(f)
compiled(X)
