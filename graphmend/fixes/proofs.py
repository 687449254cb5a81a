"""The obligations of a selection: each is shown from the facts, left to tracing, or refused with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.findings import Proof
from graphmend.fixes.arms import Arm, Branch, Outcome
from graphmend.fixes.carry import is_path
from graphmend.fixes.lazy import Licence, find_licences
from graphmend.fixes.reach import check_scripted
from graphmend.fixes.site import Refused, Site
from graphmend.flow.effects import IMPURE, Effect, effects_of
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.names import accessed
from graphmend.flow.shapes import Form, Forms, agreement
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName, Kind, Value
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.signatures.behaviour import behaviour

_STATIC, _TRACED, _ASSUMED = "statically", "checked at trace time", "assumed"


class Prover:
    """The obligations of one branch.

    Args:
        site: the place.
        branch: its normal shape.
    """

    def __init__(self, site: Site, branch: Branch) -> None:
        self.site = site
        self.branch = branch
        self.frame: Frame = frames_of(site.program).frame(site.function, site.facts)
        self.effects = effects_of(site.program)
        self.forms = Forms(site.program, self.frame)
        self.arms = list(branch.choice.arms())
        self.line = site.statement.lineno

    # ---------------------------------------------------------------- text that moves

    def movable(self) -> list[Proof]:
        """The arms' text means the same inside a nested function that is called at once."""
        check_scripted(self.site, "a selection", self.line)
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {
                    each.name for each in self.site.facts.value(node.func).targets if isinstance(each, ExternalName)
                }
                if names & behaviour().frame_readers:
                    reason = f"the function calls `{node.func.id}()`, which sees how its names are kept"
                    raise Refused(Obligation.MOVABLE_TEXT, reason, node.lineno)
        for arm in self.arms:
            for root in arm.nodes:
                for node in walk(root):
                    self.movable_node(node)
        if any(isinstance(parent, ast.ClassDef) for _, parent in self.site.ancestors(self.site.statement)):
            raise Refused(
                Obligation.MOVABLE_TEXT,
                "the branch stands in a class body, whose names functions do not see",
                self.line,
            )
        detail = (
            "the sides hold nothing that means something else in a nested function; `select` calls them at once, "
            "so that names have the values they had"
        )
        return [Proof(Obligation.MOVABLE_TEXT.value, _STATIC, detail)]

    def movable_node(self, node: ast.AST) -> None:
        """Refuse a node that means something else inside another function."""
        what = ""
        match node:
            case ast.Call(func=ast.Name(id="super"), args=[]):
                what = "calls `super()` without arguments"
            case ast.Name(id="__class__"):
                what = "reads `__class__`"
            case ast.Name(id=name) | ast.Attribute(attr=name) if name.startswith("__") and not name.endswith("__"):
                what = f"uses the private name `{name}`"
            case ast.NamedExpr(target=target):
                what = f"binds `{target.id}` with `:=`"
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                what = "suspends the function"
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                what = f"declares `{names[0]}` to be an outer name"
        if what:
            raise Refused(Obligation.MOVABLE_TEXT, f"a side of the branch {what}", getattr(node, "lineno", self.line))

    def bound(self) -> list[Proof]:
        """Every name that an arm takes from the function has a value."""
        names = self.frame.names
        for arm in self.arms:
            found = accessed(arm.nodes)
            for name in sorted(found.deletes):
                if any(target.name == name for target in self.branch.targets) or not names.read_after(
                    name, self.site.statement
                ):
                    if self.assigned_first(name, arm):
                        continue
                raise Refused(Obligation.MOVABLE_TEXT, f"a side of the branch deletes `{name}`", self.line)
            for name in sorted(found.reads - found.writes):
                if not names.is_bound(name, self.site.statement) and not self.in_comprehension(name):
                    reason = f"`{name}` may have no value here, and a nested function would fail in another way"
                    raise Refused(Obligation.BOUND_NAMES, reason, self.line)
            outside = [target.name for target in self.branch.targets if target.name in names.declared_outside]
            if outside:
                raise Refused(Obligation.MOVABLE_TEXT, f"the branch assigns the outer name `{outside[0]}`", self.line)
        return [
            Proof(
                Obligation.BOUND_NAMES.value,
                _STATIC,
                "every name that an arm reads is bound on all paths to the branch",
            )
        ]

    def assigned_first(self, name: str, arm: Arm) -> bool:
        """Whether an arm gives a name its value before it uses it."""
        first = next((statement for statement in arm.statements if name in _all_names(statement)), None)
        return (
            isinstance(first, ast.Assign) and name in accessed([first]).writes and name not in accessed([first]).reads
        )

    def in_comprehension(self, name: str) -> bool:
        """Whether a conditional expression stands in a comprehension that binds the name."""
        for _, parent in self.site.ancestors(self.site.node):
            for generator in getattr(parent, "generators", ()):
                if any(isinstance(node, ast.Name) and node.id == name for node in walk(generator.target)):
                    return True
        return False

    # ---------------------------------------------------------------- purity and totality

    def effects_of_arms(self) -> tuple[list[Licence], list[Proof]]:
        """Both arms may run whichever is taken."""
        licences = [licence for arm in self.arms for licence in find_licences(self.site, self.frame, arm)]
        # What a licensed statement does was looked at for its licence.
        licensed = {id(node) for licence in licences for node in walk(licence.statement)}
        modules = False
        for arm in self.arms:
            folded = {id(node) for statement in arm.folded for node in _outcome_nodes(statement, self.branch)}
            for doing in self.effects.doings(arm.nodes, self.frame):
                if id(doing.node) in licensed | folded:
                    continue
                if doing.effect in IMPURE:
                    raise Refused(Obligation.PURE_ARMS, _impure(doing.effect, doing.what), doing.line)
                reason = f"a side of the branch {doing.what}; it would run also where the branch was not taken"
                raise Refused(Obligation.TOTAL_ARMS, reason, doing.line)
            modules = modules or self.calls_module(arm)
        proofs = [
            Proof(
                Obligation.PURE_ARMS.value,
                _STATIC,
                "no side has an effect or draws random numbers, the functions it calls included",
            ),
            Proof(Obligation.TOTAL_ARMS.value, _STATIC, "no operation in the sides fails on the values of tensors"),
            Proof(
                Obligation.TOTAL_ARMS.value,
                _TRACED,
                "a wrong shape, dtype or attribute in a side leads back to the plain `if`",
            ),
            *dict.fromkeys(proof for licence in licences for proof in licence.proofs),
        ]
        if modules:
            proofs.append(
                Proof(
                    Obligation.PURE_ARMS.value,
                    _ASSUMED,
                    "no hook with a side effect is registered on the modules that a side calls",
                )
            )
        return licences, proofs

    def calls_module(self, arm: Arm) -> bool:
        """Whether an arm calls a module, with the hooks that are registered on it."""
        return any(
            self.site.program.is_module(cls)
            for root in arm.nodes
            for node in walk(root)
            if isinstance(node, ast.Call)
            for cls in self.site.facts.value(node.func).classes
        )

    # ---------------------------------------------------------------- agreement

    def agreeing(self) -> list[Proof]:
        """The arms are likely to agree; tracing makes sure."""
        first, *others = self.arms
        for other in others:
            for position in range(len(first.results)):
                self.agree(first, other, position)
        return [
            Proof(Obligation.ONE_ELEMENT.value, _TRACED, "the condition is a tensor of one element"),
            Proof(
                Obligation.AGREEING_ARMS.value,
                _TRACED,
                "class, shape, dtype, device, strides and requires_grad of the results",
            ),
        ]

    def agree(self, first: Arm, other: Arm, position: int) -> None:
        """Refuse two arms whose results are not likely to agree."""
        values = [self.branch.value(arm, position) for arm in (first, other)]
        self.refuse_objects(*values)
        for a, b in zip(*(_parts(value) for value in values)):
            if a is None and b is None:
                continue
            shapes = [self.form(each, arm, position) for each, arm in ((a, first), (b, other))]
            reason = agreement(*shapes)
            if reason is not None and a is not None and b is not None and self.forms.origins(a) & self.forms.origins(b):
                reason = None
            if reason is not None:
                where = next((each for each in (a, b) if each is not None), None)
                raise Refused(
                    Obligation.AGREEING_ARMS,
                    f"{reason}{_way_out(shapes)}",
                    where.lineno if where is not None else self.line,
                )
        if len(_parts(values[0])) != len(_parts(values[1])):
            raise Refused(Obligation.AGREEING_ARMS, "the sides give different numbers of values", self.line)

    def refuse_objects(self, first: ast.expr | None, other: ast.expr | None) -> None:
        """Refuse two results of which one holds a function, a module or another object, unless they are one."""
        if first is not None and other is not None and ast.dump(first) == ast.dump(other) and is_path(first):
            return
        pairs = list(zip(_parts(first), _parts(other)))
        if len(pairs) > 1:
            for pair in pairs:
                self.refuse_objects(*pair)
            return
        for node in (first, other):
            leaves = _elements(node) if node is not None else []
            found = next((each for each in leaves if _is_object(self.site.facts.value(each))), None)
            if found is not None:
                reason = f"a side gives `{brief(found)}`, and a graph selects between tensors only"
                raise Refused(Obligation.AGREEING_ARMS, reason, found.lineno)

    def form(self, node: ast.expr | None, arm: Arm, position: int) -> Form:
        """The form of a result, or of what a target is before the branch."""
        if node is not None:
            return self.forms.form(node)
        return self.forms.current(self.branch.targets[position].name, arm.anchor)


def _impure(effect: Effect, what: str) -> str:
    if effect is Effect.MESSAGE:
        return f"a side of the branch {what}; take the message out first"
    return f"a side of the branch {what}; a selection runs both sides"


def _outcome_nodes(statement: ast.stmt, branch: Branch) -> Iterator[ast.AST]:
    """The nodes of a folded statement that the outcome itself stands for: that happens once, after the selection."""
    if branch.outcome is Outcome.CALL and isinstance(statement, ast.Expr):
        yield statement.value
    elif branch.outcome is Outcome.ASSIGN and isinstance(statement, ast.Assign):
        yield from statement.targets


def _parts(value: ast.expr | None) -> list[ast.expr | None]:
    """The elements of a tuple as written, or the value."""
    if isinstance(value, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in value.elts):
        return list(value.elts)
    return [value]


def _elements(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, or what the display of a container that it is holds."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _elements(part)
        case _:
            yield node


def _is_object(value: Value) -> bool:
    """Whether a value, or what a container holds, certainly is a function, a class or an instance."""
    if value.only(Kind.CONTAINER) and value.element is not None:
        return _is_object(value.element)
    return value.may(Kind.CALLABLE | Kind.OBJECT) and not value.may(Kind.TENSOR | Kind.UNKNOWN)


def _way_out(forms: Iterable[Form]) -> str:
    if all(form.kind == "number" for form in forms):
        return "; move the branch outwards, to where the numbers meet a tensor"
    return ""


def _all_names(statement: ast.stmt) -> set[str]:
    found = accessed([statement])
    return found.reads | found.writes | found.deletes
