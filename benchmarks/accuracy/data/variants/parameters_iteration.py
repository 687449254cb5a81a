# parameters() iteration

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
    def forward(self, x):
        return x + sum(p.sum() for p in self.parameters())


compiled = torch.compile(M())
compiled(X)
