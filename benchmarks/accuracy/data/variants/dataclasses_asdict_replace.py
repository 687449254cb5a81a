# dataclasses.asdict / replace

import dataclasses
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@dataclasses.dataclass
class DC:
    a: torch.Tensor
    b: int = 2


def f(x):
    d = dataclasses.replace(DC(x * 2), b=4)
    return d.a + d.b


compiled = torch.compile(f)
compiled(X)
