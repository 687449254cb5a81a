# re.match const

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    import re
    if re.match("a", "abc"):
        return x + 1
    return x


compiled = torch.compile(f)
compiled(X)
