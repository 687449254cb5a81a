# copy.deepcopy dict consts

import copy
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    d = copy.deepcopy({"a": 1})
    return x + d["a"]


compiled = torch.compile(f)
compiled(X)
