# custom __getattr__ super().__getattr__

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
    def __getattr__(self, n):
        try:
            return super().__getattr__(n)
        except AttributeError:
            return getattr(self._modules["l"], n)
    def forward(self, x):
        return self.l(x) + self.weight.sum()


compiled = torch.compile(M())
compiled(X)
