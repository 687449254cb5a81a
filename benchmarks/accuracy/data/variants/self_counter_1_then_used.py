# self.counter += 1 then used

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = 0
    def forward(self, x):
        self.counter += 1
        return x + self.counter


compiled = torch.compile(M())
compiled(X)
