# nn.Linear ctor in forward

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def forward(self, x):
        return nn.Linear(3, 3)(x)


compiled = torch.compile(M())
compiled(X)
