"""What rules match, seen through a whole run: the place, the ids, and how often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphmend import engine
from graphmend.config import Config
from graphmend.findings import Finding, Report
from graphmend.globs import Globs
from graphmend.rules import holds, schema

OWN = """\
rules:
  - code: OWN1
    name: own-call
    summary: no sleeping
    match: {call: {function: time.sleep}, region: anywhere}
    fix: {transform: outline}
  - code: OWN2
    name: own-pattern
    summary: no old name
    match: {pattern: "helpers.old($X)", region: anywhere}
    fix: {replace: "helpers.new($X)"}
  - code: OWN3
    name: own-statement
    summary: no such constant
    match: {pattern: "LIMIT = $X", region: anywhere}
    refusal: {obligation: supported-form, reason: take it out}
"""


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(OWN)

    def run(text: str, *, own: bool = False, fix: bool = False) -> Report:
        (tmp_path / "model.py").write_text(text)
        config = Config(root=str(tmp_path), packs=("own.yaml",) if own else ())
        return engine.run(engine.Request(("model.py",), config, fix=fix, unsafe=fix))

    return run


def places(report: Report) -> list[tuple[int, str]]:
    assert report.errors == ()
    return [(finding.range.line, finding.rule) for finding in report.findings]


ANYWHERE = """\
import time
import helpers

time.sleep(1)
LIMIT = helpers.old(3)
if LIMIT:
    time.sleep(2)
try:
    def pause():
        time.sleep(3)
except NameError:
    pass


class Settings:
    LIMIT = helpers.old(time.sleep(4))
    if LIMIT:
        time.sleep(5)

    class Inner:
        time.sleep(6)

    def method(self):
        time.sleep(7)


for each in range(3):
    time.sleep(each)
with open("a") as file:
    show = [time.sleep(each) for each in file]
"""


def test_rules_for_anywhere_see_modules_and_classes(lint) -> None:  # type: ignore[no-untyped-def]
    report = lint(ANYWHERE, own=True)
    assert places(report) == [
        (4, "OWN1"),
        (5, "OWN3"),
        (5, "OWN2"),
        (7, "OWN1"),
        (10, "OWN1"),
        (16, "OWN3"),
        (16, "OWN2"),
        (16, "OWN1"),
        (18, "OWN1"),
        (21, "OWN1"),
        (24, "OWN1"),
        (28, "OWN1"),
        (30, "OWN1"),
    ]
    first: Finding = report.findings[0]
    assert [(frame.line, frame.function) for frame in first.region] == [(4, "<module>")]
    assert first.refusal is not None
    assert "imported" in first.refusal.reason


def test_a_template_mends_modules_and_classes(lint) -> None:  # type: ignore[no-untyped-def]
    (fixed,) = lint(ANYWHERE, own=True, fix=True).fixed
    assert fixed.after == ANYWHERE.replace("helpers.old", "helpers.new")


def test_the_built_in_rules_stay_inside_regions(lint) -> None:  # type: ignore[no-untyped-def]
    assert places(lint("import torch\nprint(1)\n\n\nclass Model:\n    print(2)\n", own=True)) == []


LOGGING = """\
import logging
import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x, log: logging.Logger):
        x = torch.relu(x)
        logger.info("a")
        logging.info("b")
        logger.warning_once("c")
        log.error("d")
        (logging.debug if self.training else logger.debug)("e")
        return x
"""


def test_each_call_into_logging_has_the_id_of_its_kind(lint) -> None:  # type: ignore[no-untyped-def]
    method, function = ("GB0291",), ("GB4841",)
    assert [(finding.range.line, finding.gb) for finding in lint(LOGGING).findings] == [
        (11, method),
        (12, function),
        (13, method),
        (14, method),
        (15, method + function),
    ]


VENDORED = """\
import torch
from torch import nn

{statement}


@{effect}
def _print_model(x):
    print("x", x)


def helper(x):
    {effect_owner}select(x.sum() > 0, lambda: _print_model(x), lambda: None)
    return x


class Model(nn.Module):
    def forward(self, x):
        _print_model(x.mean())
        if (x > 0).all():  # the message goes out first
            _print_model(x)
        return helper(torch.relu(x))
"""


@pytest.mark.parametrize("package", [False, True])
@pytest.mark.parametrize(
    ("statement", "owner"),
    [
        ("from . import _graphmend as graphmend", "graphmend."),
        ("from ._graphmend import effect, select", ""),
        ("from .. import _graphmend", "_graphmend."),
        ("from .._graphmend import effect, select", ""),
        ("import _graphmend as graphmend", "graphmend."),
        ("import graphmend", "graphmend."),
    ],
)
def test_a_vendored_runtime_is_known_where_its_file_is_missing(
    statement: str, owner: str, package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pkg" / "inner"
    folder.mkdir(parents=True)
    if package:
        (tmp_path / "pkg" / "__init__.py").touch()
        (folder / "__init__.py").touch()
    text = VENDORED.format(statement=statement, effect=f"{owner}effect", effect_owner=owner)
    (folder / "model.py").write_text(text)
    report = engine.run(engine.Request(("pkg",), Config(root=str(tmp_path)), fix=True))
    # The branch in which an effect is called has no fix; the effect itself is no finding.
    assert {finding.rule for finding in report.findings} <= {"GM104"}
    assert report.errors == ()
    assert report.fixed == ()


def test_a_module_that_is_there_is_what_its_file_says(lint, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "_graphmend.py").write_text("def effect(function):\n    return function\n")
    text = VENDORED.format(
        statement="import _graphmend as graphmend", effect="graphmend.effect", effect_owner="graphmend."
    )
    assert "GM301" in {finding.rule for finding in lint(text).findings}


BRANCHES = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y, names: list):
        x = torch.relu(x)
        if x.sum() > 0:
            print("only a message")
        if (x < 0).any():
            print("before an error")
            raise ValueError("negative")
        if x.sum() > 1:
            print("leaves the branch")
            x = torch.tanh(x)
        if x.sum() > 2:
            names.append("a")
            print("stays")
            x = x * 2
        elif self.training:
            print("an arm that the tensor decides")
        if self.training:
            print("a branch that tracing decides")
        print("all") if x.sum() > 3 else None
        if y.sum() > 0:
            print("y is taken for a tensor")
        return x
"""


def test_a_branch_and_the_message_in_it_are_one_finding(lint) -> None:  # type: ignore[no-untyped-def]
    report = lint(BRANCHES)
    assert places(report) == [
        (8, "GM104"),
        (10, "GM201"),
        (13, "GM101"),
        (16, "GM101"),
        (23, "GM301"),
        (24, "GM102"),
        (25, "GM104"),
    ]
    fixable = [finding.range.line for finding in report.findings if finding.fix is not None]
    assert fixable == [8, 10, 13, 23, 25]


def test_parameters_that_are_asked_like_settings_are_no_tensors(lint) -> None:  # type: ignore[no-untyped-def]
    text = """\
from torch import nn


class Model(nn.Module):
    def forward(self, x, verbose, scale, skip, mode, mask):
        x = x.relu()
        if verbose:
            x = x + 1
        if scale > 1:
            x = x * scale
        if not skip and mode == "train":
            x = x + 2
        return x if mask.all() else x + 1
"""
    assert places(lint(text)) == [(13, "GM102")]


def test_a_message_that_leaves_its_branch_is_the_first_step_of_the_fix(lint) -> None:  # type: ignore[no-untyped-def]
    (fixed,) = lint(BRANCHES, fix=True).fixed
    assert 'if condition:\n        print("leaves the branch")' in fixed.after
    assert "x = graphmend.select(condition, lambda: torch.tanh(x), lambda: x" in fixed.after
    assert '            print("stays")' in fixed.after


def test_there_is_no_first_step_without_a_second(lint) -> None:  # type: ignore[no-untyped-def]
    text = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        x = torch.relu(x)
        if x.sum() > 2:
            print("large")
            self.large = x
        return x * 2
"""
    (finding,) = lint(text).findings
    assert finding.fix is None
    assert finding.refusal is not None
    assert not lint(text, fix=True).fixed


@pytest.mark.parametrize(
    "settings",
    [
        {"select": ("GM301",)},
        {"ignore": ("GM1",)},
        {"per_file_ignores": ((Globs("/", ("model.py",)), ("GM104",)),)},
    ],
)
def test_a_message_in_a_branch_that_is_not_reported_is_reported(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(BRANCHES)
    report = engine.run(engine.Request(("model.py",), Config(root=str(tmp_path), **settings)))
    assert (9, "GM301") in places(report)
    assert (8, "GM104") not in places(report)


ABSENT = """\
import torch
from torch import nn


class Base(nn.Module):
    bias = None

    def __init__(self, k):
        super().__init__()
        self.register_buffer("mask", None)
        self.register_parameter("shift", None)
        self.scale = None
        self.k = 3


class Model(Base):
    def forward(self, x):
        x = torch.relu(x)
        if self.mask is not None and self.mask.sum() > 3:
            x = x + 1
        if self.shift is not None:
            if self.shift.sum() > 3:
                print(x)
        y = x if self.scale is None or self.scale.sum() > 3 else -x
        if self.bias is not None:
            x = x * self.bias.mean()
            if self.bias.any():
                print(x)
        if self.k > 3:
            print("k")
        return x + y
"""


def test_what_is_none_for_good_is_not_there(lint) -> None:  # type: ignore[no-untyped-def]
    assert places(lint(ABSENT)) == [(30, "GM301")], "a number is what a user of the class may set"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("mask", "m.mask = torch.ones(3)"),
        ("mask", "def set(m, x):\n    m.a, m.mask = x"),
        ("mask", "def set(m, x):\n    for m.mask in x:\n        pass"),
        ("mask", "setattr(m, 'mask', torch.ones(3))"),
        ("mask", "def set(m, name, x):\n    setattr(m, name, x)"),
        ("mask", "m.register_buffer('mask', torch.ones(3))"),
        ("mask", "m._buffers['mask'] = torch.ones(3)"),
        ("mask", "class Other(Model):\n    def set(self, x):\n        self.mask = x"),
        (
            "mask",
            "class Mid(Base):\n    pass\n\n\nclass Other(Mid):\n    def set(self, **x):\n        vars(self).update(x)",
        ),
        ("mask", "class Other(Model):\n    def set(self, x):\n        self.mask: torch.Tensor = x"),
        ("mask", "class Other(Model):\n    mask = torch.ones(3)"),
        ("mask", "class Other(Model):\n    @property\n    def mask(self):\n        return torch.ones(3)"),
        ("mask", "m.mask = None if 1 else torch.ones(3)"),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_what_something_may_set_is_there(
    name: str, more: str, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(ABSENT + ("" if apart else f"\n\n{more}\n"))
    head = "import torch\nfrom model import Base, Model\n\nm = Model(3)\n"
    (tmp_path / "other.py").write_text(f"{head}{more}\n" if apart else head)
    report = engine.run(engine.Request((".",), Config(root=str(tmp_path))))
    assert ("model.py", 19, "GM101") in [(each.path, each.range.line, each.rule) for each in report.findings]


@pytest.mark.parametrize(
    "more",
    [
        "class Unrelated:\n    def set(self, x):\n        self.mask = x\n",
        'def show(m):\n    m.mask = None\n    return hasattr(m, "x") and m.mask == 3 and "mask" in vars',
    ],
)
def test_what_others_have_does_not_matter(more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(ABSENT)
    (tmp_path / "other.py").write_text(f"import torch\n\n\n{more}\n")
    report = engine.run(engine.Request((".",), Config(root=str(tmp_path))))
    assert places(report) == [(30, "GM301")]


def test_a_parameter_of_the_constructor_is_no_constant(lint) -> None:  # type: ignore[no-untyped-def]
    text = ABSENT.replace('"mask", None', '"mask", torch.ones(3) if k else None')
    assert (19, "GM101") in places(lint(text))


def test_dead_code_is_no_proof(lint) -> None:  # type: ignore[no-untyped-def]
    """A user may set the attribute after all; what happens then has to be what happened before."""
    text = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hook = None

    def double(self, x):
        if self.hook is not None:
            self.hook(x)
        return x * 2

    def forward(self, x):
        x = torch.relu(x)
        if x.sum() > 0:
            x = self.double(x)
        return x
"""
    (finding,) = lint(text).findings
    assert finding.refusal is not None
    assert finding.refusal.obligation == "pure-arms"


ANSWERED = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, keep=True, other=False):
        x = torch.relu(x)
        if self.saving and self.training:
            if keep:
                print("not kept")
                keep = False
        y = x + 1
        for layer in range(3):
            if self.saving and self.training:
                if keep:
                    print("dead")
                y = y * 2
            elif keep:
                print("kept")
        return y
"""


def test_what_an_earlier_branch_has_answered_is_not_there(lint) -> None:  # type: ignore[no-untyped-def]
    assert places(lint(ANSWERED)) == [(10, "GM301"), (19, "GM301")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("keep = False", "keep = other"),
        ("y = x + 1", "keep = other"),
        ("y = x + 1", "self.training = other"),
        ("y = y * 2", "keep = True"),
        ("for layer in", "for keep in"),
        ("y = x + 1", "def f():\n            nonlocal keep\n            keep = True\n        f()\n        y = x"),
        ("            if self.saving and self.training:\n", "            if self.saving:\n"),
        (
            "        if self.saving and self.training:\n            if keep:",
            "        if self.saving and other:\n            if keep:",
        ),
        (
            "        if self.saving and self.training:\n            if keep:",
            "        if self.saving and self.training:\n            if other:",
        ),
        ("self.saving and self.training", "self.saving() and self.training"),
    ],
)
def test_what_no_branch_has_answered_is_there(lint, old: str, new: str) -> None:  # type: ignore[no-untyped-def]
    assert old in ANSWERED
    text = ANSWERED.replace(old, new)
    dead = next(number for number, line in enumerate(text.splitlines(), 1) if "dead" in line)
    assert (dead, "GM301") in places(lint(text))


def test_a_branch_that_only_calls_effects_only_observes(lint) -> None:  # type: ignore[no-untyped-def]
    text = """\
import torch
from graphmend import effect as later
from torch import nn


@later
def tell():
    print("large")


class Model(nn.Module):
    def forward(self, x):
        if torch.relu(x).sum() > 2:
            tell()
        return x * 2
"""
    assert places(lint(text)) == [(13, "GM104")]


def with_pack(tmp_path: Path, pack: str, text: str) -> Report:
    """What is found in a file with a rule pack of one's own."""
    (tmp_path / "own.yaml").write_text(pack)
    (tmp_path / "model.py").write_text(text)
    config = Config(root=str(tmp_path), packs=(str(tmp_path / "own.yaml"),))
    return engine.run(engine.Request((str(tmp_path / "model.py"),), config))


def test_a_branch_that_only_calls_what_a_pack_says_observes_only_observes(tmp_path: Path) -> None:
    pack = """\
rules:
  - code: ACME1
    name: acme-tell
    summary: "`tell` breaks the graph"
    match: {call: {function: model.tell}}
    fix: {transform: outline, with: {observes: true}}
"""
    text = """\
import torch
from torch import nn


def tell(x):
    print(x)


class Model(nn.Module):
    def forward(self, x):
        if torch.relu(x).sum() > 2:
            tell("large")
        return x * 2
"""
    assert (11, "GM104") in places(with_pack(tmp_path, pack, text))


def test_methods_of_classes_that_are_not_linted_match_by_their_receiver(tmp_path: Path) -> None:
    pack = """\
rules:
  - code: ACME1
    name: acme-writer
    summary: "a writer of acme breaks the graph"
    match:
      call: {method: [dump, show], receiver: acme.Writer}
    refusal: {obligation: only-observes, reason: "ask the owners of acme"}
"""
    text = """\
import acme
from acme import Writer
from torch import nn

LOG = Writer("b")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.writer = acme.Writer("a")

    def forward(self, x, writer: Writer, other):
        x = x.relu()
        self.writer.dump(x)
        LOG.dump(x)
        writer.show(x)
        acme.Writer("z").dump(x)
        other.dump(x)
        writer.close()
        return x
"""
    assert places(with_pack(tmp_path, pack, text)) == [(15, "ACME1"), (16, "ACME1"), (17, "ACME1"), (18, "ACME1")]


FORMS = """\
rules:
  - code: OWN10
    name: truth
    summary: "truth of `{test}`"
    message: "{test}"
    match: {branch: {forms: [while, comprehension-filter, match, membership, value], test: [tensor]}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN11
    name: own-assertion
    summary: an assertion
    match: {branch: {forms: [assert], test: tensor, captured: false}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN12
    name: own-attribute
    summary: attribute
    match: {attribute: {name: [grad_fn, requires_grad], of: tensor, access: write}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN13
    name: own-mask
    summary: mask
    match: {subscript: {index: boolean-tensor}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN14
    name: own-bound
    summary: bound
    match: {subscript: {bound: [tensor, scalar-read], of: [tensor, container]}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN15
    name: own-mask-write
    summary: mask write
    match: {subscript: {index: boolean-tensor, access: write, value: tensor}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN16
    name: own-context
    summary: context
    match: {context: {manager: [acme.guarded, threading.Lock]}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN17
    name: own-arguments
    summary: arguments
    match:
      call:
        function: torch.repeat_interleave
        method: repeat_interleave
        receiver: tensor
        given: {"1:repeats": tensor}
        without: output_size
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN18
    name: own-made
    summary: made
    match: {call: {makes: [module, parameter]}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN19
    name: own-disabled
    summary: disabled
    match: {call: {disabled: true}}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN20
    name: own-class
    summary: class
    match: {statement: class}
    refusal: {obligation: rewrite-known, reason: none}
  - code: OWN21
    name: own-instance
    summary: instance
    match: {call: {method: __call__, receiver: torch.nn.LSTM}}
    refusal: {obligation: rewrite-known, reason: none}
"""

CONSTRUCTS = """\
import threading

import acme
import torch
from torch import nn

lock = threading.Lock()


@torch.compiler.disable
def outside(x):
    return x


class Inner(nn.Module):
    def forward(self, x):
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 2)

    def forward(self, x, n: int):
        y = torch.relu(x)
        while y.sum() > 0:  # OWN10
            y = y - 1
        kept = [row for row in y if row.sum() > 0]  # OWN10
        match y.sum():  # OWN10
            case 1:
                y = y + 1
            case None:
                y = y + 2
        match y:
            case torch.Tensor():
                y = y + 3
        flag = not y.any()  # OWN10
        both = y.any() and n  # OWN10
        last = n and y.any()
        chained = 0 < y.sum() < 3  # OWN10
        if y.sum() in (1, 2):  # OWN10
            y = y + 1
        found = "a" in {"a": y}
        assert y.any()
        assert y.any(), "constant"
        assert not y.any()  # OWN11
        assert y.any(), f"{n}"  # OWN11
        assert y.any() and y.all()  # OWN11
        y.requires_grad = True  # OWN12
        known = y.requires_grad
        z = y[y > 0]  # OWN13
        z = y[0]
        z = y[y.long()]
        z = y[: y.long().max()]  # OWN14
        z = y[:, : y.sum().item()]  # OWN14
        z = y[: n, 1:]
        y[y > 0] = z  # OWN15
        y[y > 0] = 0
        y[y > 0] += 1  # OWN13
        with lock:  # OWN16
            y = y + 1
        with acme.guarded(y) as other, torch.no_grad():  # OWN16
            y = y + 1
        z = torch.repeat_interleave(y, y.long())  # OWN17
        z = y.repeat_interleave(repeats=y.long())  # OWN17
        z = y.repeat_interleave(y.long(), output_size=4)
        z = y.repeat_interleave(n)
        w = nn.Parameter(y)  # OWN18
        w = Inner()  # OWN18
        w = nn.Linear(2, 2)  # OWN18
        y = outside(y)  # OWN19
        class Local:  # OWN20
            pass
        y, _ = self.rnn(y)  # OWN21
        return y
"""


def test_every_construct_that_a_rule_may_name(lint, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "own.yaml").write_text(FORMS)
    report = lint(CONSTRUCTS, own=True)
    # The loop in front has the frame skipped, so that most are part of its finding.
    behind = [(each.range.line, each.rule) for finding in report.findings for each in finding.behind]
    found = sorted(place for place in places(report) + behind if place[1].startswith("OWN"))
    lines = enumerate(CONSTRUCTS.splitlines(), 1)
    assert found == [(number, line.rpartition("# ")[2]) for number, line in lines if "# OWN" in line]


def test_the_facts_of_the_schema_are_those_that_values_are_asked_for() -> None:
    assert sorted(schema.FACTS) == sorted(holds.FACTS)
