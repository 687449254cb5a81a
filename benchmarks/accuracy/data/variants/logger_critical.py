# logger.critical

import io
import logging
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
logger = logging.getLogger("gm.test")
logger.addHandler(logging.StreamHandler(io.StringIO()))
logger.propagate = False
logger.setLevel(logging.DEBUG)


def f(x):
    y = x * 2
    logger.critical("hi")
    return y + 1


compiled = torch.compile(f)
compiled(X)
