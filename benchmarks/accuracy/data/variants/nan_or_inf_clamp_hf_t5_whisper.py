# nan or inf: clamp (HF t5/whisper)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if torch.isnan(x).any() or torch.isinf(x).any():
        x = torch.clamp(x, min=-10.0, max=10.0)
    return x + 1


compiled = torch.compile(f)
compiled(X)
