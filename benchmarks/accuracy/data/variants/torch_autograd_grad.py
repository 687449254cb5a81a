# torch.autograd.grad

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    y = (x * 2).sum()
    g = torch.autograd.grad(y, x)[0]
    return g + 1


compiled = torch.compile(f)
compiled(X.clone().requires_grad_())
