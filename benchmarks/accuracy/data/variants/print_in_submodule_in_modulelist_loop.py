# print in submodule in ModuleList loop

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Inner(nn.Module):
    def forward(self, x):
        y = x * 2
        print("in")
        return y + 1


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList([Inner(), Inner(), Inner()])
        self.l = nn.Linear(3, 3)
    def forward(self, x):
        x = self.l(x)
        for m in self.a:
            x = m(x)
        return self.l(x)


compiled = torch.compile(M())
compiled(X)
