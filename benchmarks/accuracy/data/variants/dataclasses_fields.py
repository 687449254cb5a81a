# dataclasses.fields

import dataclasses
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@dataclasses.dataclass
class DC:
    a: torch.Tensor
    b: int = 2


def f(x):
    d = DC(x * 2)
    return d.a + len(dataclasses.fields(d))


compiled = torch.compile(f)
compiled(X)
