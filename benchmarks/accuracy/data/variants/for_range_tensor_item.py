# for range(tensor.item())

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
I = torch.tensor(1)


def f(x, n):
    for i in range(n.item()):
        x = x + 1
    return x * 2


compiled = torch.compile(f)
compiled(X, I)
