# try: raise ValueError caught

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    try:
        raise ValueError("a")
    except ValueError as e:
        y = x
    return y + 1


compiled = torch.compile(f)
compiled(X)
