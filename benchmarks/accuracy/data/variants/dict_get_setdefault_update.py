# dict.get / setdefault / update

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    d = {"a": x}
    d.update(b=x * 2)
    d.setdefault("c", x)
    return d.get("b") + d["c"]


compiled = torch.compile(f)
compiled(X)
