"""The obligation *identity*: nothing depends on the result being the same object as one that was there before.

In eager a selection gives the very object that its arm names; compiled code gives a new one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend.findings import Proof
from graphmend.fixes.arms import Arm, Branch, Outcome
from graphmend.fixes.package import Package
from graphmend.fixes.site import Refused, Site
from graphmend.flow.aliasing import Origin, Source, aliasing_of
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.mutation import mutations_of
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName
from graphmend.model.module import Function
from graphmend.model.scopes import bound_names, walk_scope
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.signatures.behaviour import behaviour

_EXISTING = "the result may be an object that exists before the branch"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OUTSIDE = (Origin.PARAMETER, Origin.ATTRIBUTE, Origin.GLOBAL, Origin.UNKNOWN)


def show_identity(site: Site, branch: Branch) -> Proof:
    """Why nobody can tell whether the result is an object that was there before.

    Raises:
        Refused: somebody may.
    """
    return _Identity(site, branch).proof()


class _Identity:
    def __init__(self, site: Site, branch: Branch) -> None:
        self.site = site
        self.branch = branch
        self.frame: Frame = frames_of(site.program).frame(site.function, site.facts)
        self.aliasing = aliasing_of(site.program)
        self.mutations = mutations_of(site.program)
        self.line = site.statement.lineno
        self.own = {target.name for target in branch.targets if target.name}
        """The names that stand for the result."""
        if isinstance(site.statement, ast.Assign):  # of a conditional expression
            self.own |= bound_names([site.statement])

    def proof(self) -> Proof:
        """The proof, or a refusal."""
        existing = {source for arm in self.branch.choice.arms() for source in self.existing(arm)}
        stored = self.stored_attributes()
        if not existing:
            return _proven("every side gives a new tensor")
        self.refuse_changed_later(existing)
        self.refuse_kept_elsewhere()
        if stored:
            return self.stored_proof(existing, stored)
        if self.branch.outcome is Outcome.CALL:
            reason = (
                f"the result may be an object that exists before the branch, and `{brief(self.branch.call)}` gets it"
            )
            raise Refused(Obligation.IDENTITY, reason, self.line)
        detail = f"{_EXISTING}; nothing after it changes that object in place or asks for its identity"
        if any(source.origin in _OUTSIDE for source in existing):
            self.refuse_changed_by_callers(self.site.function, set())
            detail += ", and no known caller does"
        return _proven(detail)

    def existing(self, arm: Arm) -> set[Source]:
        """The objects from before the branch that an arm's results may be."""
        inside = {id(node) for root in arm.nodes for node in walk(root)}
        found: set[Source] = set()
        for position in range(len(arm.results)):
            value = self.branch.value(arm, position)
            if value is not None:
                sources = self.aliasing.sources(value, self.frame)
            else:
                sources = self.aliasing.name_sources(self.branch.targets[position].name, self.frame, arm.anchor)
            found |= {
                source for source in sources if source.origin is not Origin.FRESH or id(source.node) not in inside
            }
        return found

    def stored_attributes(self) -> set[str]:
        """The attributes that keep the result."""
        found = {target.attribute.attr for target in self.branch.targets if target.attribute is not None}
        call = self.branch.call
        if (
            call is not None
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in behaviour().registering
            and call.args
        ):
            name = call.args[0]
            if (
                isinstance(name, ast.Constant)
                and isinstance(name.value, str)
                and call.args[0] is not self.branch.argument
            ):
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
        return _proven(detail)

    def refuse_changed_later(self, existing: set[Source]) -> None:
        """Refuse if code that may run after the branch changes one of these objects, or compares identities."""
        others = {source for source in existing if source.origin is not Origin.FRESH}
        watched = others | {source for source in existing if source.origin is Origin.FRESH and self.has_alias(source)}
        kept = self.is_kept()
        for mutation in self.mutations.below(self.site.function.body, self.frame):
            if not self.runs_later(mutation.node):
                continue
            touched = self.mutations.sources(mutation, self.frame)
            if touched & watched or (watched and kept and self.is_element(mutation.target)):
                reason = f"{_EXISTING}, and is changed in place later ({mutation.what})"
                raise Refused(Obligation.IDENTITY, reason, getattr(mutation.node, "lineno", self.line))
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Compare) and self.runs_later(node) and _compares_objects(node):
                for operand in (node.left, *node.comparators):
                    if self.aliasing.sources(operand, self.frame) & existing:
                        reason = f"{_EXISTING}, and its identity is asked for later"
                        raise Refused(Obligation.IDENTITY, reason, node.lineno)

    def is_kept(self) -> bool:
        """Whether the result is put into a container behind the branch."""
        own = self.own
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self.runs_later(node):
                if node.func.attr in self.site.program.python.writers:
                    given = [*node.args, *(keyword.value for keyword in node.keywords)]
                    if any(isinstance(each, ast.Name) and each.id in own for root in given for each in walk(root)):
                        return True
        return False

    def is_element(self, node: ast.expr) -> bool:
        """Whether an expression is an element of a container that holds more than the text shows."""
        return isinstance(node, ast.Subscript) and not self.frame.facts.value(node.value).is_tensor

    def refuse_kept_elsewhere(self) -> None:
        """Refuse if the result outlives the call in a global, or in an attribute that is asked or changed elsewhere."""
        targets = [target for node in walk_scope(self.site.function.body) for target in self.targets_of(node)]
        declared = {
            name for node in walk_scope(self.site.function.body) if isinstance(node, ast.Global) for name in node.names
        }
        for target in targets:
            if isinstance(target, ast.Name) and target.id in declared:
                raise Refused(Obligation.IDENTITY, f"{_EXISTING}, and is kept in the global `{target.id}`", self.line)
        stored = {target.attr for target in targets if isinstance(target, ast.Attribute)}
        place = Package(self.site.program, self.site.module).changed_in_place(sorted(stored)) if stored else None
        if place is not None:
            raise Refused(
                Obligation.IDENTITY,
                f"{_EXISTING}, and is kept in an attribute that {place} changes in place",
                self.line,
            )
        for node in self.site.module.nodes if stored else ():
            if isinstance(node, ast.Compare) and _compares_objects(node):
                if any(getattr(each, "attr", "") in stored for each in (node.left, *node.comparators)):
                    reason = f"{_EXISTING}, and is kept in an attribute whose identity is asked for"
                    raise Refused(Obligation.IDENTITY, reason, node.lineno)

    def targets_of(self, node: ast.AST) -> list[ast.expr]:
        """What a statement assigns the result to."""
        if not isinstance(node, ast.Assign):
            return []
        value = node.value
        named = isinstance(value, ast.Name) and value.id in self.own
        itself = isinstance(value, ast.IfExp) and value.test is self.site.node
        return node.targets if named or itself else []

    def has_alias(self, source: Source) -> bool:
        """Whether something else that is used after the branch may be the same object."""
        own = {target.name for target in self.branch.targets}
        names = self.frame.names
        for name in self.site.function.locals - own:
            if names.read_after(name, self.site.statement):
                if source in self.aliasing.name_sources(name, self.frame, self.site.statement):
                    return True
        for node in walk_scope(self.site.function.body):
            if isinstance(node, ast.Assign):
                written = [each for target in node.targets for each in walk(target)]
                stored = any(isinstance(each, (ast.Attribute, ast.Subscript)) for each in written)
                if stored and source in self.aliasing.sources(node.value, self.frame):
                    return True
        return self.branch.outcome is not Outcome.ASSIGN

    def runs_later(self, node: ast.AST) -> bool:
        """Whether a node may run after the branch: it stands behind it, or shares a loop with it."""
        last = self.branch.last
        end = (last.end_lineno or 0, last.end_col_offset or 0)
        if (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) > end:
            return True
        around = {id(parent) for _, parent in self.site.ancestors(self.site.statement) if isinstance(parent, _LOOPS)}
        inside = {id(each) for each in walk(self.site.statement)}
        current: ast.AST | None = node
        while current is not None:
            if id(current) in around:
                return id(node) not in inside
            current = self.frame.parents.get(id(current))
        return False

    def refuse_changed_by_callers(self, function: Function, seen: set[Function]) -> None:
        """Refuse if a known caller changes what it gets back in place, or compares its identity."""
        state = self.site.program.states.get(function)
        if state is None:
            return
        for caller in state.callers:
            if caller in seen:
                continue
            seen.add(caller)
            frame = frames_of(self.site.program).frame(caller)
            results = self.results_in(function, frame)
            found = {
                node.lineno
                for node in walk_scope(caller.body)
                if isinstance(node, ast.Call) and self.calls(node, function, frame)
            }
            if state.callers[caller] - found:
                # Run by a container of modules, say, whose other parts get the result and may work in place.
                line = min(state.callers[caller] - found)
                reason = (
                    f"{_EXISTING}, and what becomes of it is not seen where `{caller.name}` has it made (line {line})"
                )
                raise Refused(Obligation.IDENTITY, reason, self.line)
            if not results:
                continue
            for mutation in self.mutations.below(caller.body, frame):
                if self.mutations.sources(mutation, frame) & results:
                    place = f"{caller.module.path}:{getattr(mutation.node, 'lineno', 0)}"
                    reason = f"{_EXISTING}, and `{caller.name}` changes it in place ({place})"
                    raise Refused(Obligation.IDENTITY, reason, self.line)
            for node in walk_scope(caller.body):
                if isinstance(node, ast.Compare) and _compares_objects(node):
                    if any(
                        self.aliasing.sources(operand, frame) & results for operand in (node.left, *node.comparators)
                    ):
                        reason = (
                            f"`{caller.name}` asks for the identity of the result ({caller.module.path}:{node.lineno})"
                        )
                        raise Refused(Obligation.IDENTITY, reason, self.line)
            if self.aliasing.returned(caller) & results:
                self.refuse_changed_by_callers(caller, seen)

    def results_in(self, function: Function, frame: Frame) -> set[Source]:
        """What the calls of a function in a caller may give back, without what is made by other code."""
        found: set[Source] = set()
        for node in walk_scope(frame.function.body):
            if isinstance(node, ast.Call) and self.calls(node, function, frame):
                found |= {
                    source for source in self.aliasing.sources(node, frame) if source.origin is not Origin.UNKNOWN
                }
        return found

    def calls(self, node: ast.Call, function: Function, frame: Frame) -> bool:
        callee = frame.facts.value(node.func)
        if any(target is function or getattr(target, "function", None) is function for target in callee.targets):
            return True
        index = self.site.program.index
        return any(
            not isinstance(cls, ExternalName) and index.method(cls, "forward") is function for cls in callee.classes
        )


def _proven(detail: str) -> Proof:
    return Proof(Obligation.IDENTITY.value, "statically", detail)


def _compares_objects(node: ast.Compare) -> bool:
    """Whether a comparison asks for the identity of something other than a constant."""
    identity = any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    return identity and not any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))
