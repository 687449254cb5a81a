"""What is compiled: whole programs in, the chains of their findings out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend.cli import main
from graphmend.config import Config, Scope, default_config
from graphmend.engine import Request, run
from graphmend.findings import Finding

STEP = """\
import functools
import torch
from torch import nn


def step(x):
    y = x * 2
    print(y)
    return y + 1


"""
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        print(y)
        return y + 1


"""
STEP_LINE = "step:8"
NET_LINE = "Net.forward:8"


def lint(path: Path, scope: Scope = Scope.COMPILED, **settings: object) -> tuple[Finding, ...]:
    config: Config = replace(default_config(str(path)), scope=scope, **settings)  # type: ignore[arg-type]
    report = run(Request((str(path),), config))
    assert not report.errors
    return report.findings


def chains(findings: Sequence[Finding]) -> list[str]:
    """The chain of each finding: where it is launched in brackets, then functions with lines."""
    return [
        " ".join(f"[{f.function}:{f.line}]" if f.is_launch else f"{f.function}:{f.line}" for f in finding.region)
        for finding in findings
    ]


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


FUNCTIONS = {
    "a call at module level": ("fast = torch.compile(step)\n", "[<module>:12]"),
    "in a function that nobody calls": ("def main():\n    fast = torch.compile(step)\n", "[main:13]"),
    "with settings first": ("fast = torch.compile(dynamic=True)(step)\n", "[<module>:12]"),
    "by keyword": ("fast = torch.compile(model=step, mode='default')\n", "[<module>:12]"),
    "an alias of the compiler": ("tc = torch.compile\n\n\ndef main():\n    tc(step)\n", "[main:16]"),
    "an imported alias": ("from torch import compile as tc\n\n\ndef main():\n    tc(step)\n", "[main:16]"),
    "an alias in a function": ("def main():\n    tc = torch.compile\n    tc(step)\n", "[main:14]"),
    "an import in a function": ("def main():\n    from torch import compile\n    compile(step)\n", "[main:14]"),
    "an alias of the function": ("def main():\n    f = step\n    torch.compile(f)\n", "[main:14]"),
    "a partial function": ("def main():\n    torch.compile(functools.partial(step))\n", "[main:13]"),
    "optimize": ("import torch._dynamo\n\nfast = torch._dynamo.optimize('eager')(step)\n", "[<module>:14]"),
    "the project's own": ("import graphmend\n\nfast = graphmend.compile(step)\n", "[<module>:14]"),
    "a helper that compiles": (
        "def fast(f):\n    return torch.compile(f)\n\n\ndef main():\n    fast(step)\n",
        "[fast:13]",
    ),
    "given back by a function": (
        "def pick():\n    return step\n\n\ndef main():\n    torch.compile(pick())\n",
        "[main:17]",
    ),
    "under a main guard": ("if __name__ == '__main__':\n    torch.compile(step)(torch.ones(2))\n", "[<module>:13]"),
    "in a method": (
        "class Runner:\n    def __init__(self):\n        self.run = torch.compile(step)\n",
        "[Runner.__init__:14]",
    ),
    "kept in an attribute": (
        (
            "class Runner:\n    def __init__(self):\n        self.f = step\n\n"
            "    def start(self):\n        torch.compile(self.f)\n"
        ),
        "[Runner.start:17]",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_are_launched(name: str, tmp_path: Path) -> None:
    launch, place = FUNCTIONS[name]
    assert chains(lint(write(tmp_path, module=STEP + launch))) == [f"{place} {STEP_LINE}"]


MODULES = {
    "an instance": ("net = torch.compile(Net())\n", "[<module>:12]"),
    "a variable": ("def main():\n    net = Net().cuda().eval()\n    torch.compile(net)\n", "[main:14]"),
    "made by a function": (
        "def build():\n    return Net()\n\n\ndef main():\n    torch.compile(build())\n",
        "[main:17]",
    ),
    "in place": ("def main():\n    net = Net()\n    net.compile()\n", "[main:14]"),
    "its method": ("def main():\n    net = Net()\n    torch.compile(net.forward)\n", "[main:14]"),
    "the method of the class": ("Net.forward = torch.compile(Net.forward)\n", "[<module>:12]"),
    "the class": ("Fast = torch.compile(Net)\n", "[<module>:12]"),
    "an attribute": (
        "class Trainer:\n    def __init__(self):\n        self.net = torch.compile(Net())\n",
        "[Trainer.__init__:14]",
    ),
    "a declared parameter": ("def main(net: Net):\n    torch.compile(net)\n", "[main:13]"),
    "a stage of a Sequential": ("def main():\n    torch.compile(nn.Sequential(Net(), nn.ReLU()))\n", "[main:13]"),
    "in a wrapper": ("def main():\n    torch.compile(nn.DataParallel(Net()))\n", "[main:13]"),
    "in another module's constructor": (
        (
            "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.net = torch.compile(Net())\n"
        ),
        "[Outer.__init__:15]",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_are_launched(name: str, tmp_path: Path) -> None:
    launch, place = MODULES[name]
    assert chains(lint(write(tmp_path, module=NET + launch))) == [f"{place} {NET_LINE}"]


PASSED_ON = {
    "to a helper": (
        "def fast(f):\n    return torch.compile(f)\n",
        "from module import fast, step\n\nfast(step)\n",
        "[fast:13]",
    ),
    "over two helpers": (
        "def fast(f):\n    return torch.compile(f)\n\n\ndef faster(g):\n    return fast(g)\n",
        "import module\n\n\ndef main():\n    module.faster(module.step)\n",
        "[fast:13]",
    ),
    "to a constructor": (
        (
            "class Trainer:\n    def __init__(self, f):\n        self.f = f\n\n"
            "    def fit(self):\n        torch.compile(self.f)\n"
        ),
        "from module import Trainer, step\n\n\ndef main():\n    Trainer(step).fit()\n",
        "[Trainer.fit:17]",
    ),
    "to a module's constructor": (
        (
            "class Trainer(nn.Module):\n    def __init__(self, f):\n        super().__init__()\n"
            "        self.f = torch.compile(f)\n"
        ),
        "from module import Trainer, step\n\n\ndef main():\n    Trainer(step)\n",
        "[Trainer.__init__:15]",
    ),
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_what_another_file_passes_on(name: str, tmp_path: Path) -> None:
    helper, main, place = PASSED_ON[name]
    assert chains(lint(write(tmp_path, module=STEP + helper, main=main))) == [f"{place} {STEP_LINE}"]


def test_what_a_decorator_with_settings_compiles(tmp_path: Path) -> None:
    helper = (
        "def fast(**settings):\n    def apply(f):\n        return torch.compile(f, **settings)\n\n    return apply\n"
    )
    main = "from module import fast\n\n\n@fast(dynamic=True)\ndef g(x):\n    print(x * 2)\n"
    path = write(tmp_path, module="import torch\n\n\n" + helper, main=main)
    assert chains(lint(path)) == ["[fast.<locals>.apply:6] g:6"]


PROGRAMS = {
    "a decorator": (
        """\
@torch.compile
def f(x):
    print(x * 2)
""",
        ["[<module>:4] f:6"],
    ),
    "a decorator with settings": (
        """\
@torch.compile(fullgraph=True)
def f(x):
    print(x * 2)
""",
        ["[<module>:4] f:6"],
    ),
    "a partial decorator": (
        """\
@functools.partial(torch.compile, dynamic=True)
def f(x):
    print(x * 2)
""",
        ["[<module>:4] f:6"],
    ),
    "a decorator of the project": (
        """\
def fast(f):
    return torch.compile(f, dynamic=True) if torch.cuda.is_available() else f


@fast  # compile
def f(x):
    print(x * 2)
""",
        ["[fast:5] f:10"],
    ),
    "a decorated method": (
        """\
class Worker:
    @torch.compile
    def step(self, x):
        return self.inner(x) + 1

    def inner(self, x):
        print(x * 2)
""",
        ["[<module>:5] Worker.step:7 Worker.inner:10"],
    ),
    "a bound method": (
        """\
class Worker:
    def __init__(self):
        self.fast = torch.compile(self.step)

    def step(self, x):
        return self.inner(x) + 1

    def inner(self, x):
        print(x * 2)
""",
        ["[Worker.__init__:6] Worker.step:9 Worker.inner:12"],
    ),
    "an object that can be called": (
        """\
class Worker:
    def __call__(self, x):
        print(x * 2)


fast = torch.compile(Worker())
""",
        ["[<module>:9] Worker.__call__:6"],
    ),
    "a decorated class": (
        """\
@torch.compile
class Net(nn.Module):
    def forward(self, x):
        print(x * 2)
""",
        ["[<module>:4] Net.forward:7"],
    ),
    "a lambda": (
        """\
def show(x):
    print(x * 2)


fast = torch.compile(lambda x: show(x))
""",
        ["[<module>:8] <lambda>:8 show:5"],
    ),
    "a lambda in a function": (
        """\
def show(x):
    print(x * 2)


def main():
    return torch.compile(lambda x: show(x))
""",
        ["[main:9] main.<locals>.<lambda>:9 show:5"],
    ),
    "a nested function": (
        """\
def main(flag):
    def show(x):
        print(x * 2)

    @torch.compile
    def f(x):
        return show(x) + 1

    return f
""",
        ["[main:8] main.<locals>.f:10 main.<locals>.show:6"],
    ),
    "a nested function that is handed on": (
        """\
def main(net):
    import torch as t

    def f(x):
        print(x * 2)

    return t.compile(f)
""",
        ["[main:10] main.<locals>.f:8"],
    ),
    "the body of a class": (
        """\
class Net(nn.Module):
    def forward(self, x):
        print(x * 2)

    forward = torch.compile(forward)
""",
        ["[Net:8] Net.forward:6"],
    ),
    "a class in a function": (
        """\
def build():
    class Net(nn.Module):
        def forward(self, x):
            print(x * 2)

    return Net()


fast = torch.compile(build())
""",
        ["[<module>:12] build.<locals>.Net.forward:7"],
    ),
    "a decorated method of a class in a function": (
        """\
def build(torch):
    import torch as t

    class Worker:
        @t.compile
        def work(self, x):
            print(x * 2)

    return Worker()
""",
        ["[build:8] build.<locals>.Worker.work:10"],
    ),
    "a function bound to settings": (
        """\
def f(verbose, x):
    if verbose:
        print(x * 2)


fast = torch.compile(functools.partial(f, True))
""",
        ["[<module>:9] f:6"],
    ),
    "the callees of both": (
        """\
def show(x):
    print(x * 2)


class Net(nn.Module):
    def forward(self, x):
        show(x)


class Other(nn.Module):
    def forward(self, x):
        self.more(x)

    def more(self, x):
        show(x)


torch.compile(Other())
""",
        ["[<module>:21] Other.forward:15 Other.more:18 show:5"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_a_launch(name: str, tmp_path: Path) -> None:
    text, expected = PROGRAMS[name]
    path = write(tmp_path, module="import functools\nimport torch\nfrom torch import nn\n" + text)
    assert chains(lint(path)) == expected


SILENT = {
    "re.compile": "import re\n\npattern = re.compile('x')\n\n\ndef main(re):\n    re.compile(step)\n",
    "switched off": "fast = torch.compile(step, disable=True)\n",
    "a decorator that is switched off": "@torch.compile(disable=True)\ndef g(x):\n    print(x * 2)\n",
    "a backend of one's own": "import torch._dynamo\n\nfast = torch._dynamo.optimize(step)\n",
    "not launched": "def compile(f):\n    return f\n\n\nfast = compile(step)\n",
    "disabled by a decorator": "@torch.compiler.disable\ndef g(x):\n    step(x)\n\n\ntorch.compile(g)\n",
    "disabled in place": "def g(x):\n    torch.compiler.disable(step)(x)\n\n\ntorch.compile(g)\n",
    "disabled by its name": "step = torch.compiler.disable(step)\n\n\n@torch.compile\ndef g(x):\n    step(x)\n",
    "disabled by a decorator of the project": (
        "def apart(f):\n    return torch.compiler.disable(f)\n\n\n@apart\ndef h(x):\n    step(x)\n\n\n"
        "@torch.compile\ndef g(x):\n    h(x)\n"
    ),
    "a disabled method": (
        "class Net(nn.Module):\n    def forward(self, x):\n        self.log(x)\n\n"
        "    @torch.compiler.disable(recursive=True)\n    def log(self, x):\n        step(x)\n\n\n"
        "torch.compile(Net())\n"
    ),
    "a disabled class": (
        "@torch.compiler.disable\nclass Net(nn.Module):\n    def forward(self, x):\n        step(x)\n\n\n"
        "torch.compile(Net())\n"
    ),
    "guarded": "@torch.compile\ndef g(x):\n    if not torch.compiler.is_compiling():\n        step(x)\n",
    "guarded by a wrapper": (
        "def tracing():\n    try:\n        return torch.compiler.is_compiling()\n    except AttributeError:\n"
        "        return False\n\n\n@torch.compile\ndef g(x):\n    if tracing():\n        return x\n    step(x)\n"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_compiled(name: str, tmp_path: Path) -> None:
    # That a disabled function is called is a finding of the caller's, and no region.
    findings = [finding for finding in lint(write(tmp_path, module=STEP + SILENT[name])) if finding.rule != "GM802"]
    assert chains(findings) == []


def test_modules_count_unless_only_what_is_compiled_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, module=NET)
    assert chains(lint(path, Scope.MODULES)) == [NET_LINE]
    assert chains(lint(path, Scope.COMPILED)) == []


def test_a_module_shows_its_launch_in_both_scopes(tmp_path: Path) -> None:
    path = write(tmp_path, module=NET, train="import torch\nfrom module import Net\n\ntorch.compile(Net())\n")
    for scope in Scope:
        (finding,) = lint(path, scope)
        assert [(Path(frame.path).name, frame.is_launch) for frame in finding.region] == [
            ("train.py", True),
            ("module.py", False),
        ]


def test_the_shortest_chain_is_shown(tmp_path: Path) -> None:
    text = STEP + (
        "def middle(x):\n    return step(x)\n\n\nclass Long(nn.Module):\n    def forward(self, x):\n"
        "        return middle(x)\n\n\nclass Short(nn.Module):\n    def forward(self, x):\n        return step(x)\n"
    )
    assert chains(lint(write(tmp_path, module=text), Scope.MODULES)) == [f"Short.forward:23 {STEP_LINE}"]


def test_a_class_in_a_function_is_a_module_with_the_names_around_it(tmp_path: Path) -> None:
    text = """\
def build(size):
    import torch
    from torch import nn

    def show(x):
        print(x * 2)

    class Base(nn.Module):
        def forward(self, x):
            show(x)
            if torch.sum(x) > size:
                return x
            return x + 1

    class Net(Base):
        pass

    return Net()
"""
    found = lint(write(tmp_path, module=text), Scope.MODULES)
    assert [(finding.rule, chain) for finding, chain in zip(found, chains(found))] == [
        ("GM301", "build.<locals>.Base.forward:10 build.<locals>.show:6"),
        ("GM103", "build.<locals>.Base.forward:11"),
    ]


def test_a_forward_that_is_assigned(tmp_path: Path) -> None:
    text = """\
import torch
from torch import nn


def run(self, x):
    self.show(x)
    return x


class Net(nn.Module):
    forward = run

    def show(self, x):
        print(x * 2)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)
"""
    assert chains(lint(write(tmp_path, module=text), Scope.MODULES)) == ["run:6 Net.show:14"]


HOOK = """\
import torch
from torch import nn


def watch(module, args, output):
    y = output * 2
    print(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(watch)

    def forward(self, x):
        return x + 1


"""


def test_hooks_belong_to_the_calls_of_their_module(tmp_path: Path) -> None:
    path = write(tmp_path, module=HOOK)
    assert chains(lint(path, Scope.MODULES)) == ["Net.forward:15 watch:7"]
    assert chains(lint(path, Scope.COMPILED)) == []
    write(tmp_path, module=HOOK + "torch.compile(Net())\n")
    assert chains(lint(path, Scope.COMPILED)) == ["[<module>:19] Net.forward:15 watch:7"]


def test_what_a_launch_in_another_file_reaches_stays_while_it_is_mended(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        module="import torch\n\n\ndef step(x):\n    y = x * 2\n    print(y)\n    for _ in range(2):\n"
        "        if y.sum() > 0:\n            y = y * torch.rand(2)\n    return y\n",
        train="import torch\nfrom module import step\n\n\ndef main():\n    torch.compile(step)\n",
    )
    report = run(Request((str(path),), replace(default_config(str(path)), scope=Scope.COMPILED), fix=True))
    assert [file.count for file in report.fixed] == [1]
    (chain,) = chains(report.findings)
    assert chain.startswith("[main:6] step:")


def test_values_of_code_outside_say_nothing_of_a_region(tmp_path: Path) -> None:
    """A caller that passes something unknown does not make the parameter of a `forward` unknown."""
    main = "def main(batch):\n    net = Net()\n    net(batch['x'])\n    torch.compile(net)(net.forward(batch))\n"
    alone = lint(write(tmp_path, module=NET), Scope.MODULES)
    called = lint(write(tmp_path, module=NET + main), Scope.MODULES)
    assert [finding.confidence for finding in called] == [finding.confidence for finding in alone]


FRAME = """\
import torch


@torch.compile
def f(x, flag, items):
    y = x * 2
{body}    return y
"""
LOOP = """\
    for _ in range(2):
        y = y + 1
        if y.sum() > 0:
            y = y * torch.rand(2)
"""
LATER = """\
    if y.sum() > 1:
        y = y - torch.rand(2)
"""


def folded(tmp_path: Path, body: str, **settings: object) -> list[tuple[str, int, list[int]]]:
    """Code and line of each finding, and the lines that are behind it; lines count from the first of the body."""
    before = FRAME.split("{body}", maxsplit=1)[0].count("\n")
    findings = lint(write(tmp_path, module=FRAME.format(body=body)), Scope.MODULES, **settings)
    return [
        (finding.rule, finding.range.line - before, [part.range.line - before for part in finding.behind])
        for finding in findings
        if not finding.suppressed
    ]


FOLDED = {
    "behind a loop": (LOOP + LATER, [("GM101", 3, [5])]),
    "behind it in the loop": (
        LOOP + "        if y.sum() > 1:\n            y = y - torch.rand(2)\n" + LATER,
        [("GM101", 3, [5, 7])],
    ),
    "deeper than it": (
        LOOP + "    if flag:\n        y = y + 1\n    " + LATER.replace("\n    ", "\n        "),
        [("GM101", 3, [7])],
    ),
    "in its own branch": (
        LOOP + "            if y.sum() > 1:\n                y = y - torch.rand(2)\n",
        [("GM101", 3, [5])],
    ),
    "before it": (LATER + LOOP, [("GM101", 1, []), ("GM101", 5, [])]),
    "what has a fix": (LOOP + "    print(y)\n", [("GM101", 3, []), ("GM301", 5, [])]),
    "behind a loop that may not run": (
        "    if flag:\n" + LOOP.replace("    ", "        ", 1).replace("\n    ", "\n        ") + LATER,
        [("GM101", 4, []), ("GM101", 6, [])],
    ),
    "behind a loop that may go on before": (
        LOOP.replace("        y = y + 1\n", "        if flag:\n            continue\n") + LATER,
        [("GM101", 4, []), ("GM101", 6, [])],
    ),
    "in the other branch": (
        "    if flag:\n        y = y + 1\n    else:\n        y = y - 1\n" + LOOP + LATER,
        [("GM101", 7, [9])],
    ),
    "behind what starts a `try`": (
        "    try:\n        if y.sum() > 0:\n            y = y * torch.rand(2)\n    finally:\n        pass\n" + LATER,
        [("GM101", 2, [6])],
    ),
    "behind what comes later in a `try`": (
        "    try:\n        y = y + items[0]\n        if y.sum() > 0:\n            y = y * torch.rand(2)\n"
        "    except IndexError:\n        pass\n" + LATER,
        [("GM101", 3, []), ("GM101", 7, [])],
    ),
    "behind one that is behind": (LOOP + LOOP + LATER, [("GM101", 3, [7, 9])]),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_a_skipped_frame_hides(name: str, tmp_path: Path) -> None:
    body, expected = FOLDED[name]
    assert folded(tmp_path, body) == expected


def test_only_what_is_shown_hides_others(tmp_path: Path) -> None:
    silenced = LOOP.replace("if y.sum() > 0:", "if y.sum() > 0:  # noqa: GM101")
    assert folded(tmp_path, silenced + LATER) == [("GM101", 5, [])]
    assert folded(tmp_path, LOOP + LATER.replace("> 1:", "> 1:  # noqa: GM101")) == [("GM101", 3, [])]
    again = LOOP + "    if y.sum() > 1:\n        return y\n    z = torch.rand(2) * y\n    y = z + 1\n"
    assert folded(tmp_path, again) == [("GM101", 3, [5])]
    assert folded(tmp_path, again, ignore=("GM101",)) == [("GM103", 5, [])]


def test_a_skipped_frame_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, module=FRAME.format(body=LOOP + LATER))
    main(["lint", str(path), "--isolated"])
    text = capsys.readouterr().out
    skipped = "the frame is skipped: nothing of `f`, or of its rest, is compiled"
    assert f"= impact: skips-frame, confidence medium, GB0170; {skipped}" in text
    assert "= behind: GM101 at line 11: `if` on the value of a tensor (`y.sum() > 1`) breaks the graph" in text
    main(["lint", str(path), "--isolated", "--output-format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [(part["rule"], part["line"], part["column"]) for part in finding["behind"]] == [("GM101", 11, 5)]
    assert finding["behind"][0]["refusal"]["obligation"] == "pure-arms"
    main(["lint", str(path), "--isolated", "--output-format", "sarif"])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (location,) = result["relatedLocations"]
    assert location["physicalLocation"]["region"]["startLine"] == 11
    assert "breaks the graph" in location["message"]["text"]


def test_a_launch_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, module=STEP + "def run():\n    torch.compile(step)\n")
    main(["lint", str(path), "--isolated", "--scope", "compiled", "--output-format", "text"])
    expected = "= compiled: torch.compile in run (module.py:13) -> step (module.py:8)\n"
    assert expected in capsys.readouterr().out


def test_the_scope_is_an_option_and_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, module=NET)
    assert main(["lint", str(path)]) == 1
    (tmp_path / "graphmend.toml").write_text('scope = "compiled"\n')
    assert main(["lint", str(path)]) == 0
    assert main(["lint", str(path), "--scope", "modules"]) == 1
    with pytest.raises(SystemExit):
        main(["lint", str(path), "--scope", "compile"])
    assert "`compile` is not one of compiled, modules" in capsys.readouterr().err


PACK = """\
rules:
  - code: OLD1
    name: old-break
    summary: "`torch.relu` broke the graph"
    torch: "<2.6"
    match:
      call: {function: torch.relu}
    refusal: {obligation: only-observes, reason: "use a newer torch"}
    examples:
      - bad: |
          import torch

          class Net(torch.nn.Module):
              def forward(self, x):
                  return torch.relu(x)  # OLD1
"""


def test_rules_hold_for_the_torch_that_is_aimed_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, module=NET.replace("print(y)", "y = torch.relu(y)"))
    (tmp_path / "pack.yaml").write_text(PACK)
    lint_it = ["lint", str(path), "--rules", str(tmp_path / "pack.yaml"), "--output-format", "concise", "--quiet"]

    def codes(*more: str) -> list[str]:
        main([*lint_it, *more])
        return [line.split()[1] for line in capsys.readouterr().out.splitlines()]

    assert codes() == ["OLD1"]
    assert codes("--target-torch", "2.5") == ["OLD1"]
    assert codes("--target-torch", "2.13") == []
    (tmp_path / "graphmend.toml").write_text('torch = "2.13"\n')
    assert codes() == []
    assert codes("--target-torch", "2.5.1") == ["OLD1"]
    with pytest.raises(SystemExit):
        main([*lint_it, "--torch", "2.13"])


def test_a_nested_function_that_is_only_compiled_is_mended(tmp_path: Path) -> None:
    text = """\
import torch


def main(label):
    def f(x):
        y = x * 2
        print(label, y)
        return y + 1

    {use}
"""
    for use, mended in (("torch.compile(f)", True), ("return torch.compile(f), f", False)):
        (finding,) = lint(write(tmp_path, module=text.format(use=use)))
        assert (finding.fix is not None) is mended


def test_what_comes_first_in_a_module_that_another_one_runs_splits_its_graph(tmp_path: Path) -> None:
    inner = """\
import torch
from torch import nn


class Inner(nn.Module):
    def forward(self, x):
        print("first")
        return x * 2
"""
    outer = """

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x + 1)
"""
    for text, impact in ((inner, "fullgraph-only"), (inner + outer, "splits-graph")):
        (finding,) = lint(write(tmp_path, module=text), Scope.MODULES)
        assert finding.impact.value == impact
