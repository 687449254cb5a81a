# defaultdict / deque / OrderedDict

import collections
import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def f(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    q = collections.deque()
    q.append(x)
    o = collections.OrderedDict(a=x)
    return d["a"][0] + q[0] + o["a"]


compiled = torch.compile(f)
compiled(X)
