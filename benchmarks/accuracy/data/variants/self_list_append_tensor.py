# self.list.append(tensor)

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.acts = []
    def forward(self, x):
        self.acts.append(x * 2)
        return x + 1


compiled = torch.compile(M())
compiled(X)
