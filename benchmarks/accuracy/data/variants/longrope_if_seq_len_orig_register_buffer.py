# longrope: if seq_len > orig: register_buffer

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.orig = 2
        self.register_buffer("inv_freq", torch.ones(3), persistent=False)
        self.original_inv_freq = self.inv_freq
    def forward(self, x, position_ids):
        seq_len = torch.max(position_ids) + 1
        if seq_len > self.orig:
            self.register_buffer("inv_freq", self.original_inv_freq * 2, persistent=False)
        else:
            self.register_buffer("inv_freq", self.original_inv_freq, persistent=False)
        return x * self.inv_freq


compiled = torch.compile(M())
compiled(X, torch.tensor([[0, 1, 2]]))
