"""Which names a function binds itself, and which it takes from outside (Python's scoping rules)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.model.tree import children, walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDERS = (
    *(ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
    *COMPREHENSIONS,
)
"""What binds names, other than names themselves (``hidden`` holds those that a comprehension binds)."""


def parameters(node: FunctionNode) -> list[ast.arg]:
    """All parameters in declaration order, the starred ones included."""
    args = node.args
    starred = [args.vararg] if args.vararg else []
    keywords = [args.kwarg] if args.kwarg else []
    return [*args.posonlyargs, *args.args, *starred, *args.kwonlyargs, *keywords]


def defaults(node: FunctionNode) -> dict[str, ast.expr]:
    """Default value expressions by parameter name."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    found = dict(zip((arg.arg for arg in positional[len(positional) - len(args.defaults) :]), args.defaults))
    found.update({arg.arg: value for arg, value in zip(args.kwonlyargs, args.kw_defaults) if value is not None})
    return found


def walk_scope(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that run in the same scope as ``roots``: nested functions and classes are yielded but not entered."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        stack += children(node) if not isinstance(node, SCOPES) else outside(node)


def outside(node: FunctionNode | ast.ClassDef) -> list[ast.AST]:
    """The nodes below a function or class that run in the scope around it: decorators, defaults, bases."""
    above = [] if isinstance(node, ast.Lambda) else node.decorator_list
    if isinstance(node, ast.ClassDef):
        return [*above, *node.bases, *(keyword.value for keyword in node.keywords)]
    return [*above, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """The names that these statements bind in their own scope (comprehension variables stay inside theirs)."""
    names: set[str] = set()
    outer: set[str] = set()
    hidden: set[int] = set()
    for node in walk_scope(body):
        if isinstance(node, ast.Name):  # most nodes are names, and matching classes one by one takes its time
            if not isinstance(node.ctx, ast.Load) and id(node) not in hidden:
                names.add(node.id)
        elif isinstance(node, _BINDERS):
            match node:
                case ast.Global() | ast.Nonlocal():
                    outer.update(node.names)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(node.name)
                case ast.Import() | ast.ImportFrom():
                    names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names.add(name)
                case ast.MatchMapping(rest=str(name)):
                    names.add(name)
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    for generator in node.generators:
                        hidden.update(id(child) for child in walk(generator.target))
    return names - outer


def local_names(node: FunctionNode) -> set[str]:
    """The parameters and every name that the function's own body binds."""
    body: Iterable[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
    return {arg.arg for arg in parameters(node)} | bound_names(body)


def read_names(roots: Iterable[ast.AST]) -> set[str]:
    """Every name that is read anywhere below ``roots``, nested scopes included."""
    return {
        node.id
        for root in roots
        for node in walk(root)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
