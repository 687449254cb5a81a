"""Small random programs with branches: whatever is mended must show the same before and after."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import branch_harness as harness
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
CLASS = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)
        self.scale = nn.Parameter(torch.full((3,), 0.5))
        self.kept = torch.zeros(2, 3)

"""
UNARY = (
    "-{}",
    "torch.relu({})",
    "torch.tanh({})",
    "{}.clamp(min=-2.0, max=2.0)",
    "{} * 0.5",
    "{} + 1",
    "{}.abs()",
    "torch.exp({})",
)
UNARY += (
    "torch.log({})",
    "{}.detach()",
    "torch.nan_to_num({})",
    "self.norm({})",
    "{} * self.scale",
    "F.gelu({})",
    "{}.double().float()",
)
BINARY = ("{} + {}", "{} * {}", "torch.maximum({}, {})", "torch.where({} > 0, {}, 1.0)", "{} - {}")
CONDITIONS = (
    "{0}.sum() > 0", "({0} > 0).all()", "torch.isnan({0}).any()", "not torch.isfinite({0}).all()",
    "{0}.abs().max() < 3 and {0}.sum() < 2",
    "torch.isnan({0}).any() or torch.isinf({0}).any()", "self.training and {0}.mean() > 0", "0 < {0}.sum() < 4",
    "{0}.dim() == 2 and torch.isinf({0}).any()",
)  # fmt: skip
FORMS = (
    "if {p}:\n    y = {a}\n",
    "if {p}:\n    y = {a}\nelse:\n    y = {b}\n",
    "if {p}:\n    t = {a}\n    y = t * 2.0\nelse:\n    y = {b}\n",
    "if {p}:\n    y = {a}\n    z = {b}\n",
    "if {p}:\n    y = {a}\nelse:\n    z = {b}\n",
    "if {p}:\n    y = {a}\nelif {q}:\n    y = {b}\n",
    "if {p}:\n    y = {a}\nelif {q}:\n    y = {b}\nelse:\n    y = {c}\n",
    "if {p}:\n    y = {a}\n    y = y + {b}\n",
    "if {p}:\n    if {q}:\n        y = {a}\n    y = y * 0.5\n",
    "y = {a} if {p} else {b}\n",
    "y = {a} if {p} else {b} if {q} else {c}\n",
    "if {p}:\n    return {a}\n",
    "if {p}:\n    y = {a}\n    z = y\nz = z + {b}\n",
    "for factor in (0.5, 2.0):\n    if {p}:\n        y = {a} * factor\n",
    (
        "with torch.no_grad():\n    if {p}:\n        self.kept = {a}\n    else:\n        self.kept = {b}\n"
        "y = y + self.kept\n"
    ),
)


def expressions() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["x", "y", "z"])
    return st.recursive(
        atoms,
        lambda inner: (
            st.builds(lambda form, e: f"({form.format(e)})", st.sampled_from(UNARY), inner)
            | st.builds(lambda form, a, b: f"({form.format(a, b)})", st.sampled_from(BINARY), inner, inner)
        ),
        max_leaves=3,
    )


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = [
        "y = " + draw(expressions()).replace("y", "x").replace("z", "x"),
        "z = " + draw(expressions()).replace("z", "x"),
    ]
    for form in draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=2)):
        condition = st.builds(str.format, st.sampled_from(CONDITIONS), st.sampled_from(["x", "y", "z"]))
        parts = {name: draw(expressions()) for name in "abc"}
        lines += form.format(p=draw(condition), q=draw(condition), **parts).splitlines()
    lines.append(draw(st.sampled_from(["return y + z", "return y, z", "return y"])))
    return "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in lines)


def check(body: str, *, compiled: bool) -> bool:
    """Mend and compare; whether something was mended."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "work").mkdir()
        files = {"module.py": HEAD + CLASS + body}
        after, report = harness.mended(folder / "work", files)
        assert report.errors == (), report.errors
        if after == files:
            return False
        before_module, after_module = harness.load(folder, "before", files), harness.load(folder, "after", after)
        try:
            backends = (("eager", False), ("aot_eager", True)) if compiled else ()
            harness.compare(
                before_module.Model, after_module.Model, harness.SAMPLES[:4], whole=False, close=True, backends=backends
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{after['module.py']}") from error
        return True
    finally:
        shutil.rmtree(folder)


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_eager_is_as_before(body: str) -> None:
    check(body, compiled=False)


@settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_compiled_is_as_eager(body: str) -> None:
    check(body, compiled=True)
