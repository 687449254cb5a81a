"""A copy of the package that says the same in other words: other names, another layout, the same behaviour.

A tool that hangs on a spelling (`logger`, `nn`, `hidden_states`) passes on the library as it is and fails here. In the
files that the measured models run through, this module

- renames local variables, module-level loggers, and imports of modules (`import torch` becomes `import torch as …`),
- renames private helper functions, also where other files of the package import them, and private methods,
- writes every statement anew: comments go, lines are joined, others are split, parentheses and comments are added.

Parameters keep their names, since callers may pass them by keyword, and so does everything public.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.table2.builds import BUILDS, SHARED_FILES

FILES = tuple(sorted({*SHARED_FILES, *(name for build in BUILDS.values() for name in build.files)}))
"""Files, relative to the package, that are rewritten."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


# -- scopes -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Scope:
    """One scope of a file, with the names it binds.

    Attributes:
        kind: `module`, `class`, `function` or `comprehension`.
        parent: the scope around it.
        bound: names bound here.
        fixed: names bound here that must stay: parameters, and what `global` or `nonlocal` reach.
        elsewhere: names that a `global` or `nonlocal` statement of this scope sends away.
        dynamic: whether the scope looks at its own names at run time (`locals()` and the like).
    """

    kind: str
    parent: Scope | None = None
    bound: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    dynamic: bool = False


@dataclass(frozen=True)
class Use:
    """A place where a name is written: the scope it stands in, and how to write another.

    `import a.b` binds `a` and has no place for another name: a bare import.
    """

    name: str
    scope: Scope
    write: Callable[[str], None]
    binds: bool = False
    bare_import: bool = False


class _Names(ast.NodeVisitor):
    """Finds every name of a file and the scope it belongs to."""

    _DYNAMIC = frozenset({"locals", "eval", "exec", "vars"})

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope("module")
        self.uses: list[Use] = []
        self._scope = self.module
        self._annotation = False
        self.visit(tree)

    def groups(self) -> dict[tuple[Scope, str], list[Use]]:
        """All uses of each variable, by the scope that binds it; names bound nowhere in the file are left out."""
        found: dict[tuple[Scope, str], list[Use]] = defaultdict(list)
        for use in self.uses:
            scope = self._binding(use)
            if scope is not None:
                found[scope, use.name].append(use)
        return found

    def _binding(self, use: Use) -> Scope | None:
        scope: Scope | None = use.scope
        if scope is not None and use.name in scope.elsewhere:
            return self.module  # fixed there too, so the difference between global and nonlocal does not matter
        own = True
        while scope is not None:
            if use.name in scope.bound and (own or scope.kind != "class"):
                return scope
            own = own and scope.kind == "comprehension"
            scope = scope.parent
        return None

    def _use(self, node: ast.AST, attribute: str, name: str, *, binds: bool, bare_import: bool = False) -> None:
        scope = self._scope
        if binds:
            while scope.kind == "comprehension" and isinstance(node, ast.NamedExpr) and scope.parent:
                scope = scope.parent
            scope.bound.add(name)
        self.uses.append(Use(name, scope, lambda new: setattr(node, attribute, new), binds, bare_import))

    def _enter(self, kind: str, bodies: Iterable[ast.AST]) -> None:
        self._scope = Scope(kind, self._scope)
        for node in bodies:
            self.visit(node)
        assert self._scope.parent
        self._scope = self._scope.parent

    # names

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node, "id", node.id, binds=not isinstance(node.ctx, ast.Load))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in self._DYNAMIC and not node.args:
            self._scope.dynamic = True
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self._scope
        while self._scope.kind == "comprehension" and self._scope.parent:
            self._scope = self._scope.parent
        self.visit(node.target)
        self._scope = scope
        self.visit(node.value)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._use(node, "name", node.name, binds=True)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self._send_away(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._send_away(node.names)

    def _send_away(self, names: list[str]) -> None:
        self._scope.elsewhere.update(names)
        scope = self._scope.parent
        while scope:
            scope.fixed.update(names)
            scope = scope.parent

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            bare = alias.asname is None and "." in alias.name
            self._use(alias, "asname", alias.asname or alias.name.split(".")[0], binds=True, bare_import=bare)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*" or node.module == "__future__":
                continue
            self._use(alias, "asname", alias.asname or alias.name, binds=True)

    # scopes

    def visit_FunctionDef(self, node: Function) -> None:
        self._use(node, "name", node.name, binds=True)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._parameters(node.args)
        if node.returns:
            self._visit_annotation(node, "returns")
        self._function(node.args, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._parameters(node.args)
        self._function(node.args, [node.body])

    def _parameters(self, arguments: ast.arguments) -> None:
        """Defaults and annotations belong to the scope around."""
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
        for parameter in _parameters(arguments):
            if parameter.annotation:
                self._visit_annotation(parameter, "annotation")

    def _function(self, arguments: ast.arguments, body: Iterable[ast.AST]) -> None:
        names = {parameter.arg for parameter in _parameters(arguments)}
        outer = self._scope
        self._scope = Scope("function", outer, bound=set(names), fixed=set(names))
        for node in body:
            self.visit(node)
        self._scope = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._use(node, "name", node.name, binds=True)
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._enter("class", node.body)

    def _comprehension(self, node: Comprehension, results: Iterable[ast.AST]) -> None:
        first, *rest = node.generators
        self.visit(first.iter)
        inner: list[ast.AST] = [first.target, *first.ifs]
        for generator in rest:
            inner.extend((generator.iter, generator.target, *generator.ifs))
        self._enter("comprehension", [*inner, *results])

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, [node.key, node.value])

    # annotations may be strings, with names in them

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self._visit_annotation(node, "annotation")
        if node.value:
            self.visit(node.value)

    def _visit_annotation(self, owner: ast.AST, attribute: str) -> None:
        self._annotation = True
        self.visit(getattr(owner, attribute))
        self._annotation = False

    def visit_Constant(self, node: ast.Constant) -> None:
        if not (self._annotation and isinstance(node.value, str)):
            return
        try:
            inner = ast.parse(node.value, mode="eval")
        except SyntaxError:
            return
        for name in ast.walk(inner):
            if isinstance(name, ast.Name):
                self.uses.append(Use(name.id, self._scope, _rewriter(node, inner, name)))


def _rewriter(node: ast.Constant, inner: ast.Expression, name: ast.Name) -> Callable[[str], None]:
    """Writes another name into an annotation that is a string."""

    def write(new: str) -> None:
        name.id = new
        node.value = ast.unparse(inner)

    return write


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra:
            yield extra


# -- renaming ---------------------------------------------------------------------------------------------------------


@dataclass
class Source:
    """One file that is rewritten.

    Attributes:
        name: its path, relative to the package.
        tree: its syntax tree, which renaming changes.
        head: the comments it starts with: they say whether a program wrote the file.
        fresh: gives out names that the file does not use.
        names: what `_Names` found.
    """

    name: str
    tree: ast.Module
    head: str
    fresh: Fresh
    names: _Names

    @staticmethod
    def read(package: Path, name: str) -> Source:
        """Reads a file."""
        text = (package / name).read_text(encoding="utf-8")
        head = re.match(r"(?:#[^\n]*\n)*", text)
        tree = ast.parse(text)
        return Source(name, tree, head[0] if head else "", Fresh(set(re.findall(r"\w+", text))), _Names(tree))


class Fresh:
    """Gives out names that occur nowhere in a file."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self._count = 0

    def name(self, stem: str) -> str:
        """A new name that starts with the stem."""
        while True:
            self._count += 1
            candidate = f"{stem}{self._count}"
            if candidate not in self.taken:
                self.taken.add(candidate)
                return candidate


def rename_package(package: Path, files: tuple[str, ...] = FILES, top: str = "transformers") -> None:
    """Rewrites files of a copied package in place.

    Args:
        package: folder of the package.
        files: what to rewrite, relative to it.
        top: what the package is imported as.
    """
    sources = [Source.read(package, name) for name in files]
    texts = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    imports = [found for name, text in texts.items() for found in imports_of(name, text, files, top)]
    exported = {(found.source, alias.name) for found in imports for alias in found.node.names}
    functions = {source.name: private_functions(source) for source in sources}
    methods = private_methods(sources, texts)
    for source in sources:
        rename_names(source, functions[source.name], {name for file, name in exported if file == source.name})
        rename_methods(source, methods)
        rename_imports(source, functions, top)
        (package / source.name).write_text(relaid(source), encoding="utf-8")
    for name in {found.file for found in imports} - set(files):
        text = update_imports(texts[name], [found for found in imports if found.file == name], functions)
        if text != texts[name]:
            (package / name).write_text(text, encoding="utf-8")


def module_stems(source: Source) -> dict[str, str]:
    """Module-level names to rename, with the beginning of the new one: loggers and imported modules."""
    wanted: dict[str, str] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            wanted.update({alias.asname or alias.name: "mod" for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            torch = (node.module or "").split(".")[0] == "torch" and not node.level
            for alias in node.names:
                if torch or alias.name == "logging":
                    wanted[alias.asname or alias.name] = "mod"
                elif alias.name.startswith("_"):
                    wanted[alias.asname or alias.name] = "_aid"
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rsplit(".", 1)[-1]
            if called in ("get_logger", "getLogger"):
                wanted.update({target.id: "journal" for target in node.targets if isinstance(target, ast.Name)})
    return wanted


def private_functions(source: Source) -> dict[str, str]:
    """New names for the private functions at the top of a file."""
    found = [node.name for node in source.tree.body if isinstance(node, Function)]
    return {name: source.fresh.name("_aid") for name in found if re.match(r"_[^_]", name)}


def private_methods(sources: list[Source], texts: dict[str, str]) -> dict[str, str]:
    """New names for private methods that no other file of the package mentions, in code or in a string."""
    found, quoted = set(), set()
    rewritten = {source.name for source in sources}
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                found.update(child.name for child in node.body if isinstance(child, Function))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                quoted.update(re.findall(r"\w+", node.value))
    found = {name for name in found if re.match(r"_[^_]", name)} - quoted
    for name, text in texts.items():
        if name not in rewritten:
            found -= set(re.findall(r"\b_\w+", text))
    fresh = Fresh(set().union(*(source.fresh.taken for source in sources)))
    return {name: fresh.name("_way") for name in sorted(found)}


def rename_names(source: Source, functions: dict[str, str], exported: set[str]) -> None:
    """Renames variables in the tree; what other files import keeps its name, unless it is a private function."""
    stems = module_stems(source)
    for (scope, name), uses in source.names.groups().items():
        if name.startswith("__") or name == "_" or name in scope.fixed or scope.dynamic:
            continue
        if scope.kind == "module":
            stem = "" if name in exported else stems.get(name, "")
            new = functions.get(name) or (stem and source.fresh.name(stem))
        else:
            new = source.fresh.name("item") if scope.kind in ("function", "comprehension") else ""
        if not new or all(use.bare_import for use in uses if use.binds):
            continue
        for use in uses:
            if not use.bare_import:
                use.write(new)


def rename_methods(source: Source, methods: dict[str, str]) -> None:
    """Renames private methods where they are defined and called."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in methods:
            node.attr = methods[node.attr]
        elif isinstance(node, Function) and node.name in methods:
            node.name = methods[node.name]


@dataclass(frozen=True)
class PackageImport:
    """A `from … import` of a rewritten file.

    Attributes:
        file: the file it stands in.
        source: the file it imports from.
        node: its syntax tree.
        text: its text.
    """

    file: str
    source: str
    node: ast.ImportFrom
    text: str


_IMPORT = re.compile(r"^[ \t]*(from[ \t]+[.\w]+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n(]+))", re.MULTILINE)


def imports_of(file: str, text: str, files: tuple[str, ...], top: str) -> Iterator[PackageImport]:
    """Imports from rewritten files. Only the statements are parsed: parsing 1,800 files takes too long."""
    for match in _IMPORT.finditer(text):
        try:
            node = ast.parse(textwrap.dedent(match[1])).body[0]
        except SyntaxError:
            continue  # a line of prose in a docstring
        if isinstance(node, ast.ImportFrom) and (source := resolve(file, node, top)) in files:
            yield PackageImport(file, source, node, match[1])


def resolve(file: str, node: ast.ImportFrom, top: str) -> str:
    """The file that an import names, relative to the package."""
    if node.level:
        parts = file.split("/")[: -node.level]
        return "/".join([*parts, *(node.module or "").split(".")]) + ".py"
    return (node.module or "").removeprefix(f"{top}.").replace(".", "/") + ".py"


def rename_imports(source: Source, functions: dict[str, dict[str, str]], top: str) -> None:
    """Follows renamed functions where a rewritten file imports them from another."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            _follow(node, functions.get(resolve(source.name, node, top), {}))


def _follow(node: ast.ImportFrom, functions: dict[str, str]) -> bool:
    changed = False
    for alias in node.names:
        if alias.name in functions:
            alias.asname = alias.asname or alias.name
            alias.name = functions[alias.name]
            changed = True
    return changed


def update_imports(text: str, imports: list[PackageImport], functions: dict[str, dict[str, str]]) -> str:
    """Follows renamed functions in a file that is otherwise left alone."""
    for found in imports:
        if _follow(found.node, functions[found.source]):
            text = text.replace(found.text, ast.unparse(found.node))
    return text


_LONG = 100
"""Lines longer than this are always split."""


# -- another layout ---------------------------------------------------------------------------------------------------


def relaid(source: Source) -> str:
    """The text of a file's tree in another layout.

    Unparsing drops comments and joins every statement to one line. Some are then split again, in other places: the
    choice goes by position, so that it is the same each time.
    """
    plain = ast.unparse(ast.fix_missing_locations(source.tree)) + "\n"
    tree = ast.parse(plain)
    text = _apply(plain, _insertions(tree, plain))
    if ast.dump(ast.parse(text)) != ast.dump(tree):
        raise AssertionError(f"the new layout of {source.name} says something else")
    return source.head + "\n" + text


def _insertions(tree: ast.Module, plain: str) -> Iterator[tuple[int, int, str]]:
    """What to insert where: line, column in bytes, text."""
    lines = [line.encode() for line in plain.split("\n")]
    for number, node in enumerate(_statements(tree)):
        indent = " " * node.col_offset
        if number % 7 == 0:
            yield node.lineno, node.col_offset, f"# Step {number}.\n{indent}"
        if isinstance(node, (ast.If, ast.While)) and number % 2 == 0:
            yield node.test.lineno, node.test.col_offset, "("
            yield node.test.end_lineno or 0, node.test.end_col_offset or 0, ")"
        call = _call(node)
        if call and (number % 3 != 0 or len(lines[call.lineno - 1]) > _LONG):
            for argument in (*call.args, *call.keywords):
                yield argument.lineno, argument.col_offset, f"\n{indent}        "
            yield from _split_strings(call, f"{indent}            ", lines)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of functions. An `elif` is left out: it starts where its `else` would."""
    for function in ast.walk(tree):
        if isinstance(function, Function):
            stack: list[ast.AST] = list(function.body)
            while stack:
                node = stack.pop()
                if isinstance(node, Function | ast.ClassDef):
                    continue
                if isinstance(node, ast.stmt) and not _docstring(node):
                    yield node
                for name, value in ast.iter_fields(node):
                    children = value if isinstance(value, list) else []
                    single = len(children) == 1 and isinstance(node, ast.If) and name == "orelse"
                    if not (single and isinstance(children[0], ast.If)):
                        stack.extend(child for child in children if isinstance(child, (ast.stmt, ast.excepthandler)))


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _call(node: ast.stmt) -> ast.Call | None:
    """The outermost call of a statement, where its arguments can stand on lines of their own."""
    value = getattr(node, "exc", None) if isinstance(node, ast.Raise) else getattr(node, "value", None)
    if not isinstance(value, ast.Call) or any(isinstance(item, ast.GeneratorExp) for item in value.args):
        return None
    return value


def _split_strings(call: ast.Call, indent: str, lines: list[bytes]) -> Iterator[tuple[int, int, str]]:
    """Splits long strings among the arguments in two, which Python joins again."""
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            continue
        if argument.lineno != argument.end_lineno:
            continue
        literal = lines[argument.lineno - 1][argument.col_offset : argument.end_col_offset]
        middle = literal.find(b" ", len(literal) // 2)
        if len(literal) > 40 and middle > 0 and literal[:1] in (b"'", b'"'):
            quote = literal[:1].decode()
            yield argument.lineno, argument.col_offset + middle, f"{quote}\n{indent}{quote}"


def _apply(text: str, insertions: Iterable[tuple[int, int, str]]) -> str:
    lines = [line.encode() for line in text.split("\n")]
    # From the end to the beginning; of two at one place, the later one goes in first and ends up behind.
    for line, column, new in sorted(insertions, key=lambda item: item[:2], reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:column] + new.encode() + old[column:]
    return b"\n".join(lines).decode()
