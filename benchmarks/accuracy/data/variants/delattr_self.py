# delattr(self, ..)

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def forward(self, x):
        self.k = x * 2
        del self.k
        return x + 1


compiled = torch.compile(M())
compiled(X)
