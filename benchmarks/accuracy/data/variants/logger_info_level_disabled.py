# logger.info level disabled

import logging
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
off_logger = logging.getLogger("gm.off")
off_logger.setLevel(logging.CRITICAL)


def f(x):
    y = x * 2
    off_logger.info("hi")
    return y + 1


compiled = torch.compile(f)
compiled(X)
