# torch.from_numpy const

import numpy as np
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    return x + torch.from_numpy(np.ones(3, dtype=np.float32))


compiled = torch.compile(f)
compiled(X)
