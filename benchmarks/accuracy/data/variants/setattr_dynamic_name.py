# setattr dynamic name

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def forward(self, x):
        for i in range(2):
            setattr(self, f"k{i}", x * 2)
        return x + self.k1


compiled = torch.compile(M())
compiled(X)
