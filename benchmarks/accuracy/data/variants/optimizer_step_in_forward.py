# optimizer.step in forward

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.o = torch.optim.SGD(self.l.parameters(), lr=0.1)
    def forward(self, x):
        self.o.zero_grad()
        return self.l(x)


compiled = torch.compile(M())
compiled(X.clone().requires_grad_())
