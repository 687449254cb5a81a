# logger.warning_once (lru_cache, HF)

import functools
import io
import logging
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@functools.lru_cache(None)
def warning_once(self, *a, **k):
    self.warning(*a, **k)


hf_logger = logging.getLogger("gm.hf")
hf_logger.addHandler(logging.StreamHandler(io.StringIO()))
hf_logger.propagate = False
logging.Logger.warning_once = warning_once


def f(x):
    y = x * 2
    hf_logger.warning_once("hi")
    return y + 1


compiled = torch.compile(f)
compiled(X)
