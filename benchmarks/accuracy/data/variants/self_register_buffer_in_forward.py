# self.register_buffer in forward

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(3))
    def forward(self, x):
        self.register_buffer("b", x[0] * 2, persistent=False)
        return x + self.b


compiled = torch.compile(M())
compiled(X)
