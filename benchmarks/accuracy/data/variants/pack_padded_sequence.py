# pack_padded_sequence

import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.LSTM(3, 3, batch_first=True)
    def forward(self, x, n):
        p = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)
        return p.data + 1


compiled = torch.compile(M())
compiled(torch.ones(2, 3, 3), torch.tensor([3, 2]))
