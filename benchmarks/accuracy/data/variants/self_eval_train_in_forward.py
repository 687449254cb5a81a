# self.eval()/train() in forward

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Dropout(0.0)
    def forward(self, x):
        self.l.eval()
        return self.l(x) + 1


compiled = torch.compile(M())
compiled(X)
