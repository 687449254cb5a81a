"""Runs code before and after outline, in eager and compiled into one graph: the same messages, exceptions, values."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graphmend import engine
from graphmend.config import Config
from graphmend.findings import Fix
from tests.fixes.planning import plan_at
from tests.fixes.running import Seen, compiled, load, watch

RULES = ("GM101", "GM104", "GM201", "GM301", "GM302", "GM303")
BACKENDS = ("eager", "aot_eager")
HEAD = """\
import logging
import sys
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)
LIMIT = 1.5


class Odd(ValueError):
    def __init__(self, text, count):
        super().__init__(text, count)
        self.count = count


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.limit = 0.75
        self.register_buffer("table", torch.arange(3.0))

    def forward(
        self, x, mask: torch.Tensor = None, n: int = 1, flag: bool = False, name: str = "layer", names=("a", "b")
    ):
"""


def mend(source: str, folder: Path) -> tuple[str, engine.Report]:
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    report = engine.run(engine.Request((str(path),), Config(root=str(folder), select=RULES), fix=True))
    assert report.errors == ()
    return report.fixed[0].after if report.fixed else source, report


def check(source: str, folder: Path, calls: list[dict[str, Any]], backends: tuple[str, ...] = BACKENDS) -> None:
    """Mend a module and compare calls of its model, one after the other."""
    fixed, report = mend(source, folder)
    assert [finding.refusal for finding in report.findings] == []
    compare(source, fixed, folder, calls, backends)


def compare(source: str, fixed: str, folder: Path, calls: list[dict[str, Any]], backends: tuple[str, ...]) -> None:
    """Call the model of two texts, the second one also compiled, and compare what the calls do."""
    wanted = run(source, folder, calls, "")
    for backend in ("", *backends):
        for number, (before, after) in enumerate(zip(wanted, run(fixed, folder, calls, backend))):
            difference = before.same(after)
            assert not difference, f"call {number}, {backend or 'no'} backend: {difference}\n{source}\n{fixed}"


def run(source: str, folder: Path, calls: list[dict[str, Any]], backend: str) -> list[Seen]:
    model = load(source, folder).Model(2.0)
    if not backend:
        return [watch(lambda call=call: model(**copied(call))) for call in calls]
    with compiled(model, backend) as function:
        return [watch(lambda call=call: function(**copied(call))) for call in calls]


def copied(call: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in call.items()}


def module(*lines: str) -> str:
    return HEAD + textwrap.indent("\n".join([*lines, "return x"]), "        ") + "\n"


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values)


GOOD, BAD, ODD = tensor(0.5, 1.0, 2.0), tensor(-1.0, 0.0, 3.0), tensor(float("nan"), float("inf"), 1.0)

# -------------------------------------------------------------------- single statements


def sections(text: str) -> dict[str, str]:
    """Pieces of code by the comments that head them."""
    parts = re.split(r"^# (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip("\n") for part in parts[2::2])))


CASES = sections("""
# message
print("x", x, n, name, flag, None, sep="|")

# empty print
print()

# metadata
print(f"{x.shape} {x.dtype} {x.device} {x.ndim} {x.numel()} {tuple(x.shape)[0] + 1:>4}")

# numbers
print(f"{x.mean():.3f} {x.max().item()} {int(x.sum().nan_to_num(0.0))} {x.tolist()}")

# module values
print(self.scale, self.limit, self.training, LIMIT, self.table, type(self).__name__)

# containers
print(names, names[0], [x, n], {"a": x.sum(), "b": (n, name)}, len(names))

# formats
print("%s and %d" % (name, n), "{} {:.2f}".format(name, self.scale), "a" + name)

# log
logger.warning("at %s: %s of %d", name, x.shape, n)
logging.info("root %s", x)
logger.debug("never %s", x)

# log keywords
logger.log(logging.ERROR, "%s", x.sum(), extra={"n": n})

# warning
warnings.warn(f"limit {self.limit}", FutureWarning)
warnings.warn(DeprecationWarning("old"))

# comprehension
print([f"{v:.1f}" for v in x.tolist()], sum(k for k in range(n)), {k: len(k) for k in names})

# conditional expression
print("big" if n > 2 else name, n and name)

# loop
for i in range(2):
    print(i, x[i])
    x = x + 1

# then changed in place
y = x + 1
print(y)
y.mul_(2)
print(y)
x = y

# bare raise of a class
if (x < 0).any():
    raise ValueError

# raise
if (x < 0).any():
    raise ValueError(f"negative {x} at {name!r}\\n\\"quoted\\" \\\\ {n}")

# raise with arguments
if not (x >= 0).all():
    raise KeyError(name, n, names)

# raise of an own class
if torch.isnan(x).any() or torch.isinf(x).any():
    raise Odd("odd", n)

# raise from none
if (x > 2).any() and not torch.isnan(x).any():
    raise RuntimeError("large") from None

# static conjunct
if mask is not None and (mask < 0).any():
    raise ValueError(f"mask {mask}")

# chain
if (x < 0).any():
    print("negative")
elif torch.isnan(x).any():
    logger.error("nan in %s", name)
else:
    warnings.warn("fine")

# else stays
if (x < 0).any():
    raise ValueError("negative")
else:
    x = x + 1
x = x * 2

# elif stays
if (x < 0).any():
    raise ValueError("negative")
elif flag:
    x = x + 1
else:
    x = x - 1

# in an elif
if flag:
    x = x + 1
elif (x < 0).any():
    raise ValueError("negative")

# several elements
if x > 0:
    raise ValueError("unclear")

# nested
if (x < 0).any():
    if flag:
        print("flag", x)
    elif n > 1:
        raise ValueError(n)
    else:
        print(n)
    print("end")

# partial only when bad
if (x < 0).any():
    raise ValueError("in " + names[n])

# message in front of a selection
if (x < 0).any():
    print("negative", x)
    logger.error("%s", n)
    x = torch.relu(x)

# message behind a selection
if (x < 0).any():
    x = torch.relu(x)
    warnings.warn(f"clamped {x}")

# attribute that changes afterwards
print(self.limit, self.scale)
self.limit = 7

# names bound late
words = []
for i in range(2):
    word = name + str(i)
    if (x < i).any():
        print(word, i)
    words = [*words, word]
print(words)

# text operands
if (x < 0).any():
    print((x < 0).sum(), x.min(), x[0], x.argmax().item())
""")


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path) -> None:
    source = module(*CASES[name].split("\n"))
    calls = [
        {"x": GOOD},
        {"x": BAD, "mask": tensor(1.0), "n": 2, "flag": True},
        {"x": ODD, "mask": tensor(-1.0), "n": 3, "name": 'o"d\\d{x}'},
        {"x": GOOD, "n": 1},
    ]
    check(source, tmp_path, calls)


# Forms that no built-in rule reports as observing.
UNREPORTED = sections("""
# nested without else
if (x < 0).any():
    if flag:
        print("flag", x)
    print("end")

# own name
if (x < 0).any():
    message = f"negative {x}"
    if flag:
        message = message + name
    raise ValueError(message)

# assert
assert not (x < 0).any(), f"negative {x}"

# assert of a number
assert x.max().item() < 3
""")


@pytest.mark.parametrize("name", UNREPORTED)
def test_unreported(name: str, tmp_path: Path) -> None:
    source = module(*UNREPORTED[name].split("\n"))
    path = tmp_path / "module.py"
    path.write_text(source)
    plan, fixed = plan_at(path, HEAD.count("\n") + 1)
    assert isinstance(plan, Fix), plan
    compare(source, fixed, tmp_path, [{"x": GOOD}, {"x": BAD, "flag": True}, {"x": ODD}], BACKENDS)


def test_no_more_compilations_than_calls_need(tmp_path: Path) -> None:
    source = module('print("step", n, x.mean(), self.limit)', 'if x.sum() > n:\n    raise ValueError(f"{n} {x}")')
    fixed, _ = mend(source, tmp_path)
    model = load(fixed, tmp_path).Model(2.0)
    counter = torch._dynamo.testing.CompileCounter()
    torch._dynamo.reset()
    function = torch.compile(model, backend=counter, fullgraph=True)
    printed = [watch(lambda n=n: function(tensor(float(n), 0.0, -1.0), n=n)).printed for n in range(2, 22)]
    assert printed[7] == f"step 9 {tensor(9.0, 0.0, -1.0).mean()!r} 0.75\n"
    assert counter.frame_count <= 2


# -------------------------------------------------------------------- random programs

CONDITIONS = (
    "(x < 0).any()",
    "not (x > -0.5).all()",
    "torch.isnan(x).any() or torch.isinf(x).any()",
    "x.sum() > self.limit",
    "flag and (x > 1).any()",
    "mask is not None and (mask < 0).any()",
    "(x > 0).all() and (x < 2).all()",
    "x.max() > n",
    "not (flag or n > 2) and (x != 1).any()",
    "((x == 0) | (x == 1)).all()",
    "x[0] < self.table[1]",
)
MESSAGES = (
    'print("x", x)',
    'print(f"{x.mean():.2f} {n} {name!r}", end=";")',
    'logger.warning("at %s: %s", name, x.shape)',
    'logger.info(f"step {n}"\n            " of many")',
    'warnings.warn(f"limit {self.limit} {x.mean()}")',
    'print(n, flag, mask is None, sep="|")',
    "print(names[0], len(names), x.dtype)",
    "print(self.table, self.scale * 2)",
    'logging.error("%r", x[0])',
    "print([v for v in names], LIMIT)",
    'print("mask", mask)',
)
RAISES = (
    'raise ValueError(f"bad {x} {name}")',
    "raise KeyError(name, n)",
    'raise Odd("odd\\n", n) from None',
    "raise RuntimeError",
)
STEPS = (
    "x = torch.relu(x) - 0.5",
    "x = x * n",
    "x = x + self.table",
    "x = x.flip(0) if flag else x",
    "x = torch.where(x > 0, x, -x)",
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> list[str]:
    kind = draw(
        st.sampled_from(
            ["message", "message", "step", "observe", "raise", "chain", *(["loop", "static"] if depth == 0 else [])]
        )
    )
    if kind in ("message", "step"):
        return draw(st.sampled_from(MESSAGES if kind == "message" else STEPS)).split("\n")
    inner = draw(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=2))
    if kind == "raise":
        inner = [*inner[1:], draw(st.sampled_from(RAISES))]
    condition = draw(st.sampled_from(CONDITIONS))
    if kind == "loop":
        return ["for i in range(2):", *indented(draw(statements(depth=1))), "    print(i)"]
    if kind == "static":
        return ["if self.training and n < 3:", *indented(draw(statements(depth=1)))]
    lines = [f"if {condition}:", *indented(inner)]
    if kind == "chain" and not condition.startswith(("flag", "mask", "not (flag")):
        lines += [
            f"elif {draw(st.sampled_from(CONDITIONS[:4]))}:",
            *indented([draw(st.sampled_from((*MESSAGES, *RAISES)))]),
        ]
        lines += ["else:", *indented([draw(st.sampled_from(MESSAGES))])]
    return lines


def indented(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").split("\n")


VALUES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, float("nan"), float("inf")]), min_size=3, max_size=3)
CALL = st.fixed_dictionaries(
    {"x": VALUES.map(torch.tensor)},
    optional={
        "mask": st.sampled_from([tensor(1.0, 2.0), tensor(-1.0)]),
        "n": st.integers(0, 4),
        "flag": st.booleans(),
        "name": st.sampled_from(["layer", "", "q\"'{}\\"]),
    },
)


# Without shrinking: each try compiles several programs, and a failure prints the one it is about.
@settings(
    max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(program=st.lists(statements(), min_size=1, max_size=4), calls=st.lists(CALL, min_size=2, max_size=3))
def test_random_programs(
    program: list[list[str]], calls: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = module(*(line for statement in program for line in statement))
    check(source, tmp_path_factory.mktemp("random"), calls)
