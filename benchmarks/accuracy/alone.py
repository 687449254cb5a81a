"""The same sites from a package's point of view: what linting only the file that contains a break finds.

Some files do not show by themselves that their code is traced: a helper module, whose functions other files call. Which
ones do is decided here, by names alone and without the linter: a function counts as shown if it is the `forward` of a
class, or compiled, or called in the file by a function that is shown.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from benchmarks.accuracy.interval import Share
from benchmarks.accuracy.packages import Place, Site, Truth, site_place
from benchmarks.accuracy.statements import Source


@dataclass(frozen=True)
class AloneResult:
    """What linting single files finds.

    Attributes:
        name: the package and its version.
        total: share of all break statements.
        shown: share of those whose file shows by itself that they are traced.
        kept: share of these that are found when the whole package is linted.
        misses: those that are found in the package and not alone, although their file shows that they are traced.
    """

    name: str
    total: Share
    shown: Share
    kept: Share
    misses: tuple[Place, ...]

    @property
    def failures(self) -> list[str]:
        """The targets that are missed, in words."""
        return (
            [f"{self.name}, one file at a time: sites are missed that are found in the package"] if self.misses else []
        )


def judge_alone(
    truth: Truth, alone: Collection[Site], whole: Collection[Site], sources: Mapping[str, Source]
) -> AloneResult:
    """Compares what was found one file at a time with what was found in the package, and with what each file shows.

    Args:
        truth: the measurements.
        alone: the sites found by linting their file alone.
        whole: the sites found by linting the package.
        sources: the files with a site.
    """
    names = {path: shown_functions(source.tree) for path, source in sources.items()}
    shown = [site for site in truth.sites if is_shown(site, sources[site.path], names[site.path])]
    wanted = [site for site in shown if site in whole]
    return AloneResult(
        name=truth.name,
        total=Share(len(alone), len(truth.sites)),
        shown=Share(sum(site in alone for site in shown), len(shown)),
        kept=Share(sum(site in alone for site in wanted), len(wanted)),
        misses=tuple(site_place(site, sources[site.path]) for site in wanted if site not in alone),
    )


def is_shown(site: Site, source: Source, names: frozenset[str]) -> bool:
    """Whether a function around the site is among these names."""
    return any(function.name in names for function in source.functions(site.statement[0]))


def shown_functions(tree: ast.Module) -> frozenset[str]:
    """The names of all functions that a file itself shows to be traced."""
    functions: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault(node.name, []).append(node)
    pending = [*_compiled(tree), *(["forward"] if _has_module(tree) else [])]
    shown: set[str] = set()
    while pending:
        name = pending.pop()
        if name in functions and name not in shown:
            shown.add(name)
            pending.extend(called for function in functions[name] for called in _called(function))
    return frozenset(shown)


def _has_module(tree: ast.Module) -> bool:
    """Whether a class with bases, other than those of `autograd.Function`, has a `forward`."""
    return any(
        isinstance(node, ast.ClassDef)
        and node.bases
        and not any(_last_name(base) == "Function" for base in node.bases)
        and any(isinstance(member, ast.FunctionDef) and member.name == "forward" for member in node.body)
        for node in ast.walk(tree)
    )


def _compiled(tree: ast.Module) -> list[str]:
    """Functions that are compiled by a decorator or a call."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_is_compile(item) for item in node.decorator_list):
            found.append(node.name)
        elif isinstance(node, ast.Call) and _is_compile(node.func) and node.args:
            found.append(_last_name(node.args[0]))
    return found


def _is_compile(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Attribute) and node.attr == "compile" and _last_name(node.value) == "torch"


def _called(function: ast.AST) -> set[str]:
    return {_last_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
