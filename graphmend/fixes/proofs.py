"""The obligations of a selection: each is shown from the facts, left to tracing, or refused with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphmend.findings import Proof
from graphmend.fixes.arms import Arm, Branch, Outcome
from graphmend.fixes.lazy import Licence, find_licences
from graphmend.fixes.package import Package
from graphmend.fixes.reach import reach_of
from graphmend.fixes.site import Refused, Site
from graphmend.flow.aliasing import Origin, Source, aliasing_of
from graphmend.flow.effects import IMPURE, REGISTERING, Effect, effects_of
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.gradients import Gradients, Unknown
from graphmend.flow.names import accessed
from graphmend.flow.shapes import Form, Forms, agreement
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName
from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.obligations import Obligation

_STATIC, _TRACED, _ASSUMED = "statically", "checked at trace time", "assumed"
_FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals"})


@dataclass(frozen=True)
class Gradient:
    """How a selection may be differentiated.

    Args:
        way: ``where``, ``cond`` or empty: only without gradients.
        proofs: why.
    """

    way: str
    proofs: tuple[Proof, ...]


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
        self.aliasing = aliasing_of(site.program)
        self.forms = Forms(site.program, self.frame)
        self.arms = list(branch.choice.arms())
        self.line = site.statement.lineno

    # ---------------------------------------------------------------- text that moves

    def movable(self) -> list[Proof]:
        """The arms' text means the same inside a nested function that is called at once."""
        self.refuse_scripted()
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FRAME_READERS:
                if self.site.facts.value(node.func).targets == {ExternalName(f"builtins.{node.func.id}")}:
                    reason = f"the function calls `{node.func.id}()`, which sees how its names are kept"
                    raise Refused(Obligation.MOVABLE_TEXT, reason, node.lineno)
        for arm in self.arms:
            for root in arm.nodes:
                for node in ast.walk(root):
                    self.movable_node(node)
        if any(isinstance(parent, ast.ClassDef) for _, parent in self.site.ancestors(self.site.statement)):
            raise Refused(Obligation.MOVABLE_TEXT, "the branch stands in a class body, whose names functions do not see", self.line)
        detail = "the arms hold nothing that means something else in a nested function; `select` calls them at once, so names have the values they had"
        return [Proof(Obligation.MOVABLE_TEXT.value, _STATIC, detail)]

    def refuse_scripted(self) -> None:
        reason = reach_of(self.site.program).scripted(self.site.function)
        if reason:
            raise Refused(Obligation.NOT_SCRIPTED, f"TorchScript cannot compile a selection, and {reason}", self.line)

    def movable_node(self, node: ast.AST) -> None:
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
                if any(target.name == name for target in self.branch.targets) or not names.read_after(name, self.site.statement):
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
        return [Proof(Obligation.BOUND_NAMES.value, _STATIC, "every name that an arm reads is bound on all paths to the branch")]

    def assigned_first(self, name: str, arm: Arm) -> bool:
        """Whether an arm gives a name its value before it uses it."""
        first = next((statement for statement in arm.statements if name in _all_names(statement)), None)
        return isinstance(first, ast.Assign) and name in accessed([first]).writes and name not in accessed([first]).reads

    def in_comprehension(self, name: str) -> bool:
        """Whether a conditional expression stands in a comprehension that binds the name."""
        for _, parent in self.site.ancestors(self.site.node):
            for generator in getattr(parent, "generators", ()):
                if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(generator.target)):
                    return True
        return False

    # ---------------------------------------------------------------- purity and totality

    def effects_of_arms(self) -> tuple[list[Licence], list[Proof]]:
        """Both arms may run whichever is taken."""
        licences = [licence for arm in self.arms for licence in find_licences(self.site, self.frame, arm)]
        # What a licensed statement does was looked at for its licence.
        licensed = {id(node) for licence in licences for node in ast.walk(licence.statement)}
        modules = False
        for arm in self.arms:
            folded = {id(node) for statement in arm.folded for node in _outcome_nodes(statement, self.branch)}
            for doing in self.effects.doings(arm.nodes, self.frame):
                if doing.node is not None and id(doing.node) in licensed | folded:
                    continue
                if doing.effect in IMPURE:
                    raise Refused(Obligation.PURE_ARMS, _impure(doing.effect, doing.what), doing.line)
                reason = f"a side of the branch {doing.what}; it would run also where the branch was not taken"
                raise Refused(Obligation.TOTAL_ARMS, reason, doing.line)
            modules = modules or self.calls_module(arm)
        proofs = [
            Proof(Obligation.PURE_ARMS.value, _STATIC, "no side has an effect or draws random numbers, the functions it calls included"),
            Proof(Obligation.TOTAL_ARMS.value, _STATIC, "no operation in the sides fails on the values of tensors"),
            Proof(Obligation.TOTAL_ARMS.value, _TRACED, "a wrong shape, dtype or attribute in a side leads back to the plain `if`"),
            *dict.fromkeys(proof for licence in licences for proof in licence.proofs),
        ]
        if modules:
            proofs.append(Proof(Obligation.PURE_ARMS.value, _ASSUMED, "no hook with a side effect is registered on the modules that a side calls"))
        return licences, proofs

    def calls_module(self, arm: Arm) -> bool:
        return any(
            self.site.program.is_module(cls)
            for root in arm.nodes
            for node in ast.walk(root)
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
            Proof(Obligation.AGREEING_ARMS.value, _TRACED, "class, shape, dtype, device, strides and requires_grad of the results"),
        ]

    def agree(self, first: Arm, other: Arm, position: int) -> None:
        values = [self.value(arm, position) for arm in (first, other)]
        for a, b in zip(*(_parts(value) for value in values)):
            if a is None and b is None:
                continue
            shapes = [self.form(each, arm, position) for each, arm in ((a, first), (b, other))]
            reason = agreement(*shapes)
            if reason is not None and a is not None and b is not None and self.forms.origins(a) & self.forms.origins(b):
                reason = None
            if reason is not None:
                where = next((each for each in (a, b) if each is not None), None)
                raise Refused(Obligation.AGREEING_ARMS, f"{reason}{_way_out(shapes)}", where.lineno if where is not None else self.line)
        if len(_parts(values[0])) != len(_parts(values[1])):
            raise Refused(Obligation.AGREEING_ARMS, "the sides give different numbers of values", self.line)

    def form(self, node: ast.expr | None, arm: Arm, position: int) -> Form:
        if node is not None:
            return self.forms.form(node)
        return self.forms.current(self.branch.targets[position].name, arm.anchor)

    def value(self, arm: Arm, position: int) -> ast.expr | None:
        """The expression behind a result; ``None`` if the arm leaves the target as it was.

        Raises:
            Refused: the value is assigned in a way that says nothing about it.
        """
        value = arm.results[position]
        if value is not None:
            return value
        name = self.branch.targets[position].name
        written = [statement for statement in arm.statements if name in accessed([statement]).writes]
        if not written:
            return None
        last = written[-1]
        if isinstance(last, ast.Assign) and len(last.targets) == 1:
            match last.targets[0], last.value:
                case ast.Name(), value:
                    return value
                case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                    for target, value in zip(targets, values):
                        if isinstance(target, ast.Name) and target.id == name:
                            return value
        raise Refused(Obligation.AGREEING_ARMS, f"what `{name}` is at the end of a side is not known", last.lineno)

    # ---------------------------------------------------------------- gradients

    def gradient(self) -> Gradient:
        """How the result may be differentiated."""
        try:
            problem = self.leaf_difference()
        except Unknown as unknown:
            problem = f"{unknown.reason} (line {unknown.line})"
        if problem is not None:
            detail = f"not shown ({problem}), so the selection is made only where no gradient is needed"
            return Gradient("", (Proof(Obligation.SAME_LEAVES.value, _TRACED, detail),))
        same = Proof(Obligation.SAME_LEAVES.value, _STATIC, f"all sides read {self.leaf_words()}")
        unbounded = self.unbounded()
        if unbounded is None:
            bounded = Proof(Obligation.BOUNDED_DERIVATIVE.value, _STATIC, "each side's derivative is finite for every input")
            return Gradient("where", (same, bounded))
        detail = f"not shown (`{brief(unbounded)}`): `torch.cond` differentiates the taken side only"
        return Gradient("cond", (same, Proof(Obligation.BOUNDED_DERIVATIVE.value, _TRACED, detail)))

    def gradients(self, arm: Arm) -> Gradients:
        return Gradients(self.site.program, self.frame, arm.nodes)

    def leaves(self, arm: Arm, position: int) -> frozenset[str]:
        value = self.value(arm, position)
        if value is None:
            return frozenset((self.branch.targets[position].name,))
        return self.gradients(arm).leaves(value)

    def leaf_difference(self) -> str | None:
        first, *others = self.arms
        for position in range(len(first.results)):
            expected = self.leaves(first, position)
            for other in others:
                difference = expected ^ self.leaves(other, position)
                if difference:
                    return f"only one side reads `{sorted(difference)[0]}`"
        return None

    def leaf_words(self) -> str:
        names = sorted({name for position in range(len(self.arms[0].results)) for name in self.leaves(self.arms[0], position)})
        return ", ".join(f"`{name}`" for name in names) or "no tensor that may require a gradient"

    def unbounded(self) -> ast.expr | None:
        for arm in self.arms:
            for position in range(len(arm.results)):
                value = self.value(arm, position)
                found = self.gradients(arm).unbounded(value) if value is not None else None
                if found is not None:
                    return found
        return None

    # ---------------------------------------------------------------- identity

    def identity(self) -> list[Proof]:
        """Nothing depends on the result being an argument, attribute or other object that was there before."""
        existing = {source for arm in self.arms for source in self.existing(arm)}
        unknown = any(source.origin is Origin.UNKNOWN for source in existing)
        stored = self.stored_attributes()
        if not existing:
            return [Proof(Obligation.IDENTITY.value, _STATIC, "every side gives a new tensor")]
        self.refuse_changed_later(existing)
        if stored:
            return [self.stored_proof(existing, stored)]
        if self.branch.outcome is Outcome.CALL:
            reason = f"the result may be an object that exists before the branch, and `{brief(self.branch.call)}` gets it"
            raise Refused(Obligation.IDENTITY, reason, self.line)
        outside = {source for source in existing if source.origin in (Origin.PARAMETER, Origin.ATTRIBUTE, Origin.GLOBAL)}
        if outside or unknown:
            self.refuse_changed_by_callers(self.site.function, set())
        detail = "the result may be an object that exists before the branch; nothing after it changes that object in place or asks for its identity"
        if outside or unknown:
            detail += ", and no known caller does"
        return [Proof(Obligation.IDENTITY.value, _STATIC, detail)]

    def existing(self, arm: Arm) -> set[Source]:
        """The objects from before the branch that an arm's results may be."""
        inside = {id(node) for root in arm.nodes for node in ast.walk(root)}
        found: set[Source] = set()
        for position in range(len(arm.results)):
            value = self.value(arm, position)
            if value is not None:
                sources = self.aliasing.sources(value, self.frame)
            else:
                sources = self.aliasing.name_sources(self.branch.targets[position].name, self.frame, arm.anchor)
            found |= {source for source in sources if source.origin is not Origin.FRESH or id(source.node) not in inside}
        return found

    def stored_attributes(self) -> set[str]:
        """The attributes that keep the result."""
        found = {target.attribute.attr for target in self.branch.targets if target.attribute is not None}
        call = self.branch.call
        if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in REGISTERING and call.args:
            name = call.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and call.args[0] is not self.branch.argument:
                found.add(name.value)
        return found

    def stored_proof(self, existing: Iterable[Source], stored: set[str]) -> Proof:
        bad = [source for source in existing if source.origin not in (Origin.ATTRIBUTE, Origin.FRESH)]
        if bad:
            what = f"the {bad[0].origin.value} `{bad[0].name}`" if bad[0].name else "an object that is not known"
            reason = f"the attribute may hold {what} itself, and compiled code would put a copy there"
            raise Refused(Obligation.IDENTITY, reason, self.line)
        attributes = sorted(stored | {source.name for source in existing if source.name})
        place = Package(self.site.program, self.site.module).changed_in_place(attributes)
        words = ", ".join(f"`{name}`" for name in attributes)
        if place is not None:
            reason = f"{words} may share one tensor, which {place} changes in place"
            raise Refused(Obligation.IDENTITY, reason, self.line)
        detail = f"{words} may be one tensor before and two after: no file of the package changes any of them in place"
        return Proof(Obligation.IDENTITY.value, _STATIC, detail)

    def refuse_changed_later(self, existing: set[Source]) -> None:
        """Refuse if code that may run after the branch changes one of these objects, or compares identities."""
        others = {source for source in existing if source.origin is not Origin.FRESH}
        watched = others | {source for source in existing if source.origin is Origin.FRESH and self.has_alias(source)}
        for mutation in self.aliasing.mutations(self.site.function.body, self.frame):
            if not self.runs_later(mutation.node):
                continue
            touched = self.aliasing.sources_of(mutation, self.frame)
            if touched & watched:
                reason = f"the result may be an object that exists before the branch, and is changed in place later ({mutation.what})"
                raise Refused(Obligation.IDENTITY, reason, getattr(mutation.node, "lineno", self.line))
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Compare) and self.runs_later(node) and _compares_objects(node):
                for operand in (node.left, *node.comparators):
                    if self.aliasing.sources(operand, self.frame) & existing:
                        reason = "the result may be an object that exists before the branch, and its identity is asked for later"
                        raise Refused(Obligation.IDENTITY, reason, node.lineno)

    def has_alias(self, source: Source) -> bool:
        """Whether something else that is used after the branch may be the same object."""
        own = {target.name for target in self.branch.targets}
        names = self.frame.names
        for name in self.site.function.locals - own:
            if names.read_after(name, self.site.statement):
                if source in self.aliasing.name_sources(name, self.frame, self.site.statement):
                    return True
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Assign) and any(not isinstance(target, ast.Name) for target in node.targets):
                stores = any(isinstance(each, (ast.Attribute, ast.Subscript)) for target in node.targets for each in ast.walk(target))
                if stores and source in self.aliasing.sources(node.value, self.frame):
                    return True
        return self.branch.outcome is not Outcome.ASSIGN

    def runs_later(self, node: ast.AST) -> bool:
        """Whether a node may run after the branch: it stands behind it, or shares a loop with it."""
        last = self.branch.last
        if (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) > (last.end_lineno or 0, last.end_col_offset or 0):
            return True
        loops = (ast.For, ast.AsyncFor, ast.While)
        around = {id(parent) for _, parent in self.site.ancestors(self.site.statement) if isinstance(parent, loops)}
        inside = {id(each) for each in ast.walk(self.site.statement)}
        current: ast.AST | None = node
        while current is not None:
            if id(current) in around:
                return id(node) not in inside
            current = self.frame.parents.get(id(current))
        return False

    def refuse_changed_by_callers(self, function: Function, seen: set[Function]) -> None:
        """Refuse if a known caller changes what it gets back in place, or compares its identity."""
        state = self.site.program.states.get(function)
        for caller in state.callers if state is not None else ():
            if caller in seen:
                continue
            seen.add(caller)
            frame = frames_of(self.site.program).frame(caller)
            results = self.results_in(function, frame)
            if not results:
                continue
            for mutation in self.aliasing.mutations(caller.body, frame):
                if self.aliasing.sources_of(mutation, frame) & results:
                    place = f"{caller.module.path}:{getattr(mutation.node, 'lineno', 0)}"
                    reason = f"the result may be an object that exists before the branch, and `{caller.name}` changes it in place ({place})"
                    raise Refused(Obligation.IDENTITY, reason, self.line)
            for node in walk_scope(caller.body):
                if isinstance(node, ast.Compare) and _compares_objects(node):
                    if any(self.aliasing.sources(operand, frame) & results for operand in (node.left, *node.comparators)):
                        reason = f"`{caller.name}` asks for the identity of the result ({caller.module.path}:{node.lineno})"
                        raise Refused(Obligation.IDENTITY, reason, self.line)
            if self.aliasing.returned(caller) & results:
                self.refuse_changed_by_callers(caller, seen)

    def results_in(self, function: Function, frame: Frame) -> set[Source]:
        """What the calls of a function in a caller may give back, without what is made by other code."""
        found: set[Source] = set()
        for node in walk_scope(frame.function.body):
            if isinstance(node, ast.Call) and self.calls(node, function, frame):
                found |= {source for source in self.aliasing.sources(node, frame) if source.origin is not Origin.UNKNOWN}
        return found

    def calls(self, node: ast.Call, function: Function, frame: Frame) -> bool:
        callee = frame.facts.value(node.func)
        if any(target is function or getattr(target, "function", None) is function for target in callee.targets):
            return True
        index = self.site.program.index
        return any(not isinstance(cls, ExternalName) and index.method(cls, "forward") is function for cls in callee.classes)


# -------------------------------------------------------------------- helpers


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


def _compares_objects(node: ast.Compare) -> bool:
    """Whether a comparison asks for the identity of something other than a constant."""
    identity = any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    return identity and not any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))


def _way_out(forms: Iterable[Form]) -> str:
    if all(form.kind == "number" for form in forms):
        return "; move the branch outwards, to where the numbers meet a tensor"
    return ""


def _all_names(statement: ast.stmt) -> set[str]:
    found = accessed([statement])
    return found.reads | found.writes | found.deletes
