# ruff: noqa: PLW0108
from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from runtime_helpers import Compiled, see

import graphmend
from graphmend.vendor import runtime_source, write_runtime

X = torch.ones(2, 2)

USER = """
from {runtime} import effect, select

@effect
def say(*args):
    print("{name} says", *args)
"""


def load(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def packages(tmp_path, monkeypatch):
    modules = []
    for name in ("first_package", "second_package"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        write_runtime(folder / "_graphmend.py")
        (folder / "user.py").write_text(USER.format(runtime=f"{name}._graphmend", name=name))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("first_package", "second_package"):
        modules.append(importlib.import_module(f"{name}.user"))
    yield modules
    for name in [name for name in sys.modules if name.partition(".")[0] in ("first_package", "second_package")]:
        del sys.modules[name]


@graphmend.effect
def say(*args):
    print("graphmend says", *args)


def test_copies_keep_apart_and_in_order(packages, backend):
    first, second = packages

    def function(x):
        first.say(1, x)
        second.say(2, x)
        say(3)
        first.say(4)
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    assert see(compiled, X) == see(function, X)
    assert see(graphmend.compile(function, backend=backend, fullgraph=True), X) == see(function, X)


def test_copy_selects(packages):
    module = sys.modules["first_package._graphmend"]

    def function(x):
        return module.select(x.sum() > 0, lambda: x + 1, lambda: x - 1)

    compiled = Compiled(function, fullgraph=True)
    for scale in (1, -1):
        assert see(compiled, X * scale) == see(function, X * scale)


def test_copies_select_by_cond(packages):
    for runtime in (sys.modules["first_package._graphmend"], sys.modules["second_package._graphmend"], graphmend):

        def whole(x, runtime=runtime):
            return runtime.select(x.sum() > 0, lambda: x.log(), lambda: x.sin(), grad="cond")

        def refused(x, runtime=runtime):
            inner = x.sum() > 1
            return runtime.select(
                x.sum() > 0,
                lambda: runtime.select(inner, lambda: x.log(), lambda: x.sqrt(), grad="cond"),
                lambda: x.sin(),
                grad="cond",
            )

        x = X.clone().requires_grad_()
        assert torch.equal(Compiled(whole, fullgraph=True)(x), whole(x))
        assert torch.equal(Compiled(refused)(x), refused(x))


def test_copy_needs_torch_only():
    tree = ast.parse(runtime_source())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(str(node.module).partition(".")[0])
    assert modules - sys.stdlib_module_names == {"torch"}


def test_copy_defines_no_name_twice():
    tree = ast.parse(runtime_source())
    names = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            overload = any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
            names += [] if overload else [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    assert sorted(names) == sorted(set(names))


def test_copy_is_clean():
    source = runtime_source().replace("# ruff: noqa\n", "")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--target-version", "py310", "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_writes_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "_graphmend.py"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr("graphmend.vendor.runtime_source", lambda: "\ud800")
        with pytest.raises(UnicodeEncodeError):
            write_runtime(path)
    assert [p.name for p in tmp_path.iterdir()] == ["_graphmend.py"]
    assert path.read_text() == "old"
    write_runtime(path)
    first = path.read_bytes()
    write_runtime(path)
    assert path.read_bytes() == first
    assert b"\r" not in first
    with pytest.raises(FileNotFoundError):
        write_runtime(tmp_path / "missing" / "_graphmend.py")


def test_imported_again_after_it_was_thrown_away(tmp_path):
    write_runtime(tmp_path / "copy.py")
    first = load(tmp_path / "copy.py", "thrown_away_runtime")
    second = load(tmp_path / "copy.py", "thrown_away_runtime")
    del sys.modules["thrown_away_runtime"]
    assert first.OPERATOR is not second.OPERATOR
