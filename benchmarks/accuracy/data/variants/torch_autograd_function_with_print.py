# torch.autograd.Function with print

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class MyFnPrint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("fwd")
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2


def f(x):
    return MyFnPrint.apply(x) + 1


compiled = torch.compile(f)
compiled(X.clone().requires_grad_())
