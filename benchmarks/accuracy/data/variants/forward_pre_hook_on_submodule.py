# forward_pre_hook on submodule

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.l.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
        self.l.register_forward_hook(lambda m, a, o: o + 1)
    def forward(self, x):
        return self.l(x)


compiled = torch.compile(M())
compiled(X)
