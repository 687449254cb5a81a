# dtype==fp16 and isinf(x).any(): clamp (fp16 in)

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    if x.dtype == torch.float16 and torch.isinf(x).any():
        x = torch.clamp(x, min=-10.0, max=10.0)
    return x + 1


compiled = torch.compile(f)
compiled(X.half())
