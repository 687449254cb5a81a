"""From parsed files to findings: regions and flow over a set of files, then rules and plans, file by file."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

from graphmend.config import AssumeCallers, Config, Scope
from graphmend.findings import (
    Applicability,
    Confidence,
    FileError,
    Finding,
    Fix,
    Frame,
    Impact,
    Range,
    Refusal,
    Severity,
)
from graphmend.fixes import plan_fix
from graphmend.fixes.site import RuntimeImport, Site
from graphmend.flow.absent import facts_of_tracing
from graphmend.flow.answered import is_answered
from graphmend.flow.chains import Chains
from graphmend.flow.impact import impact_of, parents_of
from graphmend.flow.launches import Launch
from graphmend.flow.order import runs_before
from graphmend.flow.program import Program, Watched
from graphmend.model.index import Index
from graphmend.model.module import Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.regions.heirs import base_words
from graphmend.rules.inputs import is_known_behind
from graphmend.rules.matcher import Match, Matcher, functions_given_data
from graphmend.rules.model import AttributeMatch, BranchMatch, CallMatch, ContextMatch, Rule
from graphmend.rules.select import ignored_codes

_REMEMBERED = 200
"""After how many functions what was found out about them and those around is forgotten, to bound the memory."""
_SEVERITY = {
    Impact.SKIPS_FRAME: Severity.ERROR,
    Impact.SPLITS_GRAPH: Severity.WARNING,
    Impact.FULLGRAPH_ONLY: Severity.NOTE,
}


@dataclass(frozen=True)
class Lead:
    """A finding with what a next pass needs to know of it.

    Args:
        finding: what is reported.
        start: offset of the statement that holds it.
        end: end of what the plan depends on, at least of that statement; a fix that touches it may change the plan.
        number: tells the leads of one file apart, as long as it is not looked at again.
        behind: the numbers of those that tracing does not get to if this one has the whole frame skipped.
    """

    finding: Finding
    start: int
    end: int
    number: int = 0
    behind: frozenset[int] = frozenset()


class Analysis:
    """Regions and flow for the entries of some files.

    Args:
        index: through which files are read and names resolved.
        config: the settings of the run.
        rules: the rules that are on.
        observers: all known call rules whose fix is *outline*.
    """

    def __init__(self, index: Index, config: Config, rules: Sequence[Rule], observers: Sequence[Rule]) -> None:
        self.index = index
        self.config = config
        self.matcher = Matcher(rules, observers)
        watched = Watched(_attributes(rules, "read"), _attributes(rules, "write"), functions_given_data(rules))
        self.program = Program(index, _classes((*rules, *observers)), watched)
        self.everywhere = any(rule.region.value == "anywhere" for rule in rules)
        self._functions: dict[str, list[Function]] = {}
        self._asked = 0
        self._numbers = count(1)

    def enter(self, paths: Iterable[str], others: Mapping[str, AbstractSet[str]]) -> Iterator[FileError]:
        """Follow the regions that start in some files, and in those that derive classes from theirs.

        Args:
            paths: the files.
            others: the files that hold no region of their own, with the words among which their base classes are.

        Yields:
            What goes wrong inside graphmend.
        """
        pending, entered = list(paths), dict[str, Module | None]()
        while pending:
            entered |= {os.path.abspath(path): self.index.load(path) for path in pending}
            pending = list(self._heirs(entered.keys(), others))
        yield from self._follow([module for module in entered.values() if module is not None])
        self.program.forget()
        self._functions.clear()
        for function in self._candidates():
            self._functions.setdefault(os.path.abspath(function.module.path), []).append(function)

    def _follow(self, modules: Sequence[Module]) -> Iterator[FileError]:
        """Follow the regions that start in some files."""
        launches: list[Launch] = []
        try:
            launches = self.program.find_launches(modules)
        except Exception as error:  # noqa: BLE001 - reported, and the rest goes on
            yield crash(modules[0].path, "looking for what is compiled", error)
        for module in modules:
            try:
                self.program.add_module(module)
            except Exception as error:  # noqa: BLE001 - reported, and the other files go on
                yield crash(module.path, "following its regions", error)
        try:
            self.program.launch(launches)
        except Exception as error:  # noqa: BLE001 - reported, and the rest goes on
            yield crash(launches[0].path, "following what is compiled", error)

    def _heirs(self, entered: AbstractSet[str], others: Mapping[str, AbstractSet[str]]) -> Iterator[str]:
        """The other files in which a class derives from a module class of those that were entered."""
        modules = self.index.modules()
        names = {
            cls.name
            for path in entered
            for cls in (modules[path].classes if path in modules else ())
            if self.program.is_module(cls)
        }
        for path, text in self.index.linted(entered):
            bases = others[path] if path in others else base_words(text)
            if not names.isdisjoint(bases):
                yield path

    def _candidates(self) -> Iterator[Function]:
        for function in self.program.traced():
            if self.matcher.concerns(self.program, function) and (not self._is_narrow or function in self._chains):
                yield function

    @property
    def _is_narrow(self) -> bool:
        """Whether only what a visible ``torch.compile`` reaches is reported."""
        return self.config.scope is Scope.COMPILED

    @property
    def _chains(self) -> Chains:
        """How functions get into the regions that are reported."""
        return self.program.chains(compiled=self._is_narrow)

    def concerns(self, path: str) -> bool:
        """Whether a file may have findings."""
        return self.everywhere or os.path.abspath(path) in self._functions

    def leads(self, path: str, runtime: RuntimeImport) -> Iterator[Lead | FileError]:
        """The findings of one file, in no particular order; errors for what graphmend could not do."""
        module = self.index.load(path)
        if module is None:
            return
        functions = list(self._functions.get(os.path.abspath(path), ()))
        if self.everywhere:
            functions += [function for function in module.functions if function not in functions]
            functions += module.code
        for function in functions:
            failure = self.program.failures.get(function)
            if failure is not None:
                yield crash(module.path, f"interpreting {function.qualname}", failure)
            try:
                yield from self._function_leads(function, runtime)
            except Exception as error:  # noqa: BLE001 - reported, and the other functions go on
                yield crash(module.path, f"looking at {function.qualname}", error)
        self._asked += len(functions)
        if self._asked >= _REMEMBERED:
            self._asked = 0
            self.program.forget()

    def _function_leads(self, function: Function, runtime: RuntimeImport) -> Iterator[Lead]:
        facts = self.program.facts(function)
        traced = function in self._chains
        matches = [
            match
            for match in self.matcher.matches(self.program, facts)
            if traced or match.rule.region.value == "anywhere"
        ]
        if not matches:
            return
        seen = facts_of_tracing(self.program, facts)
        if seen is not facts:
            alive = {(id(match.node), match.rule.code) for match in self.matcher.matches(self.program, seen)}
            matches = [match for match in matches if (id(match.node), match.rule.code) in alive]
        parents = parents_of(function)
        matches = [match for match in matches if not is_answered(match.node, function, parents)]

        def site_of(match: Match) -> Site:
            return Site(
                self.program, function, facts, match.statement, match.node, parents, runtime, self.config.torchscript
            )

        held = held_messages(matches, self._shown(function.module, matches), parents)
        inside = {id(message) for messages in held.values() for message in messages}
        found = _one_each([match for match in matches if id(match) not in inside], self.config.min_confidence)
        found = [
            match
            for match in found
            if not any(is_known_behind(each, match, self.program, facts, parents) for each in found)
        ]
        numbers = {id(match): next(self._numbers) for match in found}
        for match in found:
            messages = [(site_of(message), message) for message in held.get(id(match), ())]
            finding = self._finding(site_of(match), match, messages)
            behind = frozenset[int]()
            if finding.impact is Impact.SKIPS_FRAME and traced:
                hidden = (each for each in found if runs_before(match.node, each.statement, parents))
                behind = frozenset(numbers[id(each)] for each in hidden if each.rule.region.value != "anywhere")
            yield Lead(finding, *_planned_on(function, match), numbers[id(match)], behind)

    def _shown(self, module: Module, matches: Iterable[Match]) -> list[Match]:
        """The matches in a file that the settings let be reported."""
        silenced = ignored_codes(os.path.abspath(module.path).replace(os.sep, "/"), self.config)
        least = self.config.min_confidence.rank
        return [m for m in matches if m.confidence.rank <= least and not m.rule.code.startswith(silenced)]

    def _finding(self, site: Site, match: Match, messages: Sequence[tuple[Site, Match]]) -> Finding:
        """What is reported of a match; ``messages`` are those that its branch holds."""
        function, rule = site.function, match.rule
        module = function.module
        place = place_of(module, match)
        frames = [*self._way(function), Frame(module.path, place.line, function.qualname)]
        breaking = (
            match.statement if isinstance(match.node, ast.stmt) or place.line == match.statement.lineno else match.node
        )
        is_part = isinstance(match.node, ast.expr) and not isinstance(match.statement, ast.Expr)
        at = match.node if is_part else breaking
        impact = Impact.SKIPS_FRAME
        if not rule.skips_frame:
            impact = impact_of(site.facts, at, site.parents, self._is_entry(function))
        fix, refusal = self._plan(site, match)
        if fix is None:
            fix = self._first_step(site, match, messages)
            refusal = refusal if fix is None else None
        return Finding(
            rule.code,
            rule.name,
            module.path,
            place,
            rule.severity or _SEVERITY[impact],
            match.confidence,
            impact,
            message_of(rule, match, function),
            tuple(frames),
            match.gb,
            fix,
            refusal,
            source_line=module.source.line(place.line),
            holds=tuple(place_of(module, message) for _, message in messages),
        )

    def _way(self, function: Function) -> Iterator[Frame]:
        """The frames that bring a function into a region: what launches it as far as that is seen, and the callers."""
        launched = self.program.chains(compiled=True)
        chain = (launched if function in launched else self._chains).chain(function)
        launch = self.program.entries.get(chain[0][0])
        if launch is not None:
            yield Frame(launch.path, launch.line, launch.where, is_launch=True)
        yield from (Frame(each.module.path, line, each.qualname) for each, line in chain[:-1])

    def _is_entry(self, function: Function) -> bool:
        """Whether nothing is known to be computed in the graph before a function starts and after it ends."""
        if self.program.entries.get(function) is not None:
            return True
        state = self.program.states.get(function)
        callers = state.callers if state is not None else ()
        return not any(caller in self._chains for caller in callers)

    def _first_step(self, site: Site, match: Match, messages: Sequence[tuple[Site, Match]]) -> Fix | None:
        """The fix that takes a message out of a branch, if there is one for the branch without its messages."""
        if not messages:
            return None
        with _left_out([each.statement for each, _ in messages], site.parents) as something_left:
            if not something_left or self._plan(site, match)[0] is None:
                return None
        for each, message in messages:
            fix, _ = self._plan(each, message)
            if fix is not None and _leaves(fix, each.source.span(each.statement), each.source.span(site.statement)):
                return replace(fix, is_step=True)
        return None

    def _plan(self, site: Site, match: Match) -> tuple[Fix | None, Refusal | None]:
        rule = match.rule
        if rule.fix is None:
            assert rule.refusal is not None
            return None, Refusal("none", rule.refusal.obligation.value, rule.refusal.reason)
        plan = plan_fix(site, rule.fix, match.captures)
        if isinstance(plan, Refusal):
            return None, plan
        assumes = any(proof.how == "assumed" for proof in plan.proof)
        if assumes and self.config.assume_callers is AssumeCallers.NONE:
            changes = "what an exception leaves behind, where code out of sight writes into a tensor after it"
            plan = replace(plan, applicability=Applicability.UNSAFE, changes=plan.changes or changes)
        return plan, None


def _planned_on(function: Function, match: Match) -> tuple[int, int]:
    """The range of what the plan of a match depends on: of an early return, what follows is the other side."""
    start, end = function.module.source.span(match.statement)
    if any(isinstance(node, ast.Return) for node in walk_scope([match.statement])):
        end = function.module.source.span(function.node)[1]
    return start, end


@contextmanager
def _left_out(statements: Sequence[ast.stmt], parents: Mapping[int, ast.AST]) -> Iterator[bool]:
    """Some statements are not in the tree meanwhile; what is known of its other nodes, by their identity, stays.

    To ask for a plan that has been asked for with them before, so that what is remembered of the function is complete.

    Yields:
        Whether something is left of every block that cannot be empty.
    """
    blocks = [
        block
        for parent in {id(parents[id(each)]): parents[id(each)] for each in statements}.values()
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(parent, name, None), list)
    ]
    before = [list(block) for block in blocks]
    for block in blocks:
        block[:] = [each for each in block if each not in statements]
    try:
        yield all(getattr(parents[id(each)], "body", None) != [] for each in statements)
    finally:
        for block, kept in zip(blocks, before, strict=True):
            block[:] = kept


def _leaves(fix: Fix, message: tuple[int, int], branch: tuple[int, int]) -> bool:
    """Whether a fix changes more of a branch than the message in it."""
    return any(
        branch[0] <= edit.start <= edit.end <= branch[1] and not (message[0] <= edit.start and edit.end <= message[1])
        for edit in fix.edits
    )


def held_messages(
    matches: Iterable[Match], shown: Iterable[Match], parents: Mapping[int, ast.AST]
) -> dict[int, list[Match]]:
    """The messages among some matches that are part of a branch, by the identity of the branch's match.

    A branch on a tensor and the message in it are one break: where the branch is not taken there is nothing else, and
    once the branch is mended the message shows by itself if it still breaks.

    Args:
        matches: all that was found in a function.
        shown: those of them that are reported.
        parents: the parent of every node of the function.
    """
    branches = {id(parents.get(id(m.node))): m for m in shown if isinstance(m.rule.match, BranchMatch)}
    held: dict[int, list[Match]] = {}
    for match in matches:
        branch = _branch_around(match, parents, branches) if match.rule.observes else None
        if branch is not None:
            held.setdefault(id(branch), []).append(match)
    return held


def _branch_around(match: Match, parents: Mapping[int, ast.AST], branches: Mapping[int, Match]) -> Match | None:
    """The innermost of some branches that decides whether a match is reached."""
    child: ast.AST = match.node
    parent = parents.get(id(child))
    while parent is not None:
        if id(parent) in branches and child is not getattr(parent, "test", None):
            return branches[id(parent)]
        child, parent = parent, parents.get(id(parent))
    return None


def _one_each(matches: Sequence[Match], least: Confidence) -> list[Match]:
    """One graph break a statement: one that may be mended, or else the one that is evaluated first.

    What else breaks in a statement shows by itself once that is mended. Rules that name no graph break stand for
    themselves.

    Args:
        matches: all that was found in a function.
        least: the least certain findings that are shown.
    """
    best: dict[object, Match] = {}
    for match in matches:
        key = id(match.statement) if match.gb else (id(match.statement), match.rule.code)
        known = best.setdefault(key, match)
        if _precedence(match, least) < _precedence(known, least):
            best[key] = match
    chosen = {id(match) for match in best.values()}
    return [match for match in matches if id(match) in chosen]


def _precedence(match: Match, least: Confidence) -> tuple[bool, bool, int, int, int]:
    """Smaller for what a person should look at first; what ends first is evaluated first."""
    node = match.node
    hidden = match.confidence.rank > least.rank
    return hidden, match.rule.fix is None, node.end_lineno or 0, node.end_col_offset or 0, -node.col_offset


def place_of(module: Module, match: Match) -> Range:
    """The range of a finding: from the keyword to the end of the test (and message), or the called name to the end."""
    source, statement, node = module.source, match.statement, match.node
    if isinstance(statement, (ast.If, ast.While)) and node is statement.test:
        return source.range(source.span(statement)[0], source.span(node)[1])
    if isinstance(statement, ast.Assert) and node is statement.test:
        return source.range(*source.span(statement))
    start, end = source.span(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _is_dotted(node.func):
        start = source.span(node.func)[1] - len(node.func.attr)
    return source.range(start, end)


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def message_of(rule: Rule, match: Match, function: Function) -> str:
    """The text of a finding, its placeholders filled in from the source."""
    source = function.module.source
    values = {"callee": match.callee, "function": function.qualname}
    if isinstance(match.node, ast.expr):
        values["test"] = values["code"] = _brief(source.segment(match.node))
    for name, captured in match.captures.items():
        nodes = captured if isinstance(captured, tuple) else (captured,)
        values[name] = _brief(", ".join(source.segment(node) for node in nodes))
    text = rule.message
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _brief(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _classes(rules: Iterable[Rule]) -> frozenset[str]:
    """The classes of whose instances rules ask."""
    found: set[str] = set()
    for rule in rules:
        match rule.match:
            case CallMatch(receivers=names) | AttributeMatch(owners=names) | ContextMatch(managers=names):
                found.update(name for name in names if "." in name)
    return frozenset(found)


def _attributes(rules: Iterable[Rule], access: str) -> frozenset[str]:
    """The attributes that rules report where they are read, or written."""
    matches = (rule.match for rule in rules if isinstance(rule.match, AttributeMatch))
    return frozenset(name for match in matches if access in match.access for name in match.names)


def crash(path: str, stage: str, error: Exception) -> FileError:
    """The error to report when graphmend itself failed on a file."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno})" if where else ""
    return FileError(
        path,
        f"graphmend failed while {stage}: {type(error).__name__}: {error}{place}",
        hint="this is a bug in graphmend; the rest of the run goes on",
    )


__all__ = ["Analysis", "Confidence", "Lead", "crash", "message_of", "place_of"]
