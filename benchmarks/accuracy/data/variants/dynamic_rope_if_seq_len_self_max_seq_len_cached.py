# dynamic rope: if seq_len > self.max_seq_len_cached

import torch
import torch.nn as nn

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.max_seq_len_cached = 2
        self.register_buffer("inv_freq", torch.ones(3), persistent=False)
    def forward(self, x, position_ids):
        seq_len = torch.max(position_ids) + 1
        if seq_len > self.max_seq_len_cached:
            self.register_buffer("inv_freq", torch.ones(3) * 2, persistent=False)
            self.max_seq_len_cached = seq_len
        return x * self.inv_freq


compiled = torch.compile(M())
compiled(X, torch.tensor([[0, 1, 2]]))
