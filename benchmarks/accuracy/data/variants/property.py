# @property

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self._s = 3
    @property
    def s(self):
        return self._s
    def forward(self, x):
        return x * self.s


compiled = torch.compile(M())
compiled(X)
