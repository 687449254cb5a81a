"""The text of a selection: the arms as lambdas or nested functions, the call, and what becomes of its value.

The arms' text is the source's own, with its comments; only its indentation may change.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from graphmend.findings import Edit
from graphmend.fixes.arms import Arm, Branch, Choice, Outcome, Side
from graphmend.fixes.condition import Condition, expression_text
from graphmend.fixes.emit import Style, reindent
from graphmend.fixes.site import Refused, Site
from graphmend.flow.frames import Frame
from graphmend.flow.names import accessed
from graphmend.model.module import Function
from graphmend.obligations import Obligation
from graphmend.source.edits import make_edit

Span = tuple[int, int]
_SHORTEST_LENGTH = 79


@dataclass
class Writer:
    """Writes one branch as a selection.

    Args:
        site: the place.
        frame: the function's names.
        style: the file's style.
        branch: what is written.
        conditions: the tests, by identity of their node.
        runtime: the name of the runtime.
        options: keyword arguments of every selection, as text.
        guard: the test of an ``if`` that stays around the selection; empty for none.
    """

    site: Site
    frame: Frame
    style: Style
    branch: Branch
    conditions: dict[int, Condition]
    runtime: str
    options: Sequence[str]
    guard: str
    copied: list[Span] = field(default_factory=list)
    """Spans of the source that are in the new text with their comments."""

    @property
    def length(self) -> int:
        """How long lines may be: no file means to keep below what PEP 8 asks for."""
        return max(self.style.length, _SHORTEST_LENGTH)

    def edit(self) -> Edit:
        """The replacement of the branch."""
        source = self.site.source
        first, last = self.branch.first, self.branch.last
        start, end = source.span(first)[0], source.span(last)[1]
        if isinstance(first, ast.expr):
            return make_edit(source, start, end, self.expression())
        end = self.with_comments(end, source.indentation(first.lineno))
        newline, unit = source.newline, self.style.unit
        outer = source.indentation(first.lineno)
        before = source.line_starts[first.lineno - 1]
        if source.text[before:start].strip():
            return make_edit(source, start, end, self.on_one_line(outer))
        indentation, lines = outer, ""
        if source.text.startswith("elif", start):
            # What was the last part of a chain becomes the body of an `else`.
            lines, indentation = f"{outer}else:{newline}", outer + unit
        opened = bool(lines)
        if self.guard:
            lines += f"{indentation}if {self.guard}:{newline}"
            indentation, opened = indentation + unit, True
        functions, arguments = self.selection(self.branch.choice, indentation, top=True)
        statement = indentation + self.statement(arguments, indentation)
        comments = "".join(
            f"{indentation if not self.guard else outer}{comment}{newline}" for comment in self.comments(start, end)
        )
        blank = newline if functions and (opened or not self.follows_blank(first)) else ""
        head = comments + lines + blank if opened else blank + comments
        return make_edit(source, before, end, head + functions + statement)

    def on_one_line(self, indentation: str) -> str:
        """The selection of a branch that shares its line with other statements."""
        functions, arguments = self.selection(self.branch.choice, indentation, top=True)
        if functions or self.guard:
            raise Refused(
                Obligation.SUPPORTED_FORM, "the branch shares its line with other code", self.branch.first.lineno
            )
        return self.statement(arguments, indentation)

    def follows_blank(self, first: ast.stmt) -> bool:
        """Whether a nested function in place of the branch needs no blank line before it."""
        body = getattr(self.site.function.node, "body", None)
        starts = (
            isinstance(body, list)
            and body[0] is first
            and self.site.source.indentation(first.lineno - 1) < self.site.source.indentation(first.lineno)
        )
        return starts or not self.site.source.line(first.lineno - 1).strip()

    def with_comments(self, end: int, indentation: str) -> int:
        """The end of a statement with the comment behind it and the comment lines below it that belong to its block."""
        source = self.site.source
        line = source.position(end)[0]
        rest = source.text[end : source.line_starts[line - 1] + len(source.line(line))]
        if rest.strip().startswith("#"):
            end += len(rest.rstrip())
        elif rest.strip():
            return end
        while line < len(source.line_starts):
            line += 1
            text = source.line(line)
            if not (text.strip().startswith("#") and len(source.indentation(line)) > len(indentation)):
                break
            end = source.line_starts[line - 1] + len(text.rstrip())
        return end

    # ---------------------------------------------------------------- the selection

    def expression(self) -> str:
        """A conditional expression's selection, on as many lines as it needs."""
        line = self.site.source.position(self.site.source.span(self.branch.first)[0])[0]
        arms = [self.lambda_of(side) for side in (self.branch.choice.true, self.branch.choice.false)]
        condition = self.conditions[id(self.branch.choice.test)].inline
        start = self.site.source.span(self.branch.first)[0]
        before = self.site.source.text[self.site.source.line_starts[line - 1] : start]
        arguments = [condition, *arms, *self.options]
        text = f"{self.runtime}.select({', '.join(arguments)})"
        if len(before) + len(text) <= self.length and "\n" not in text:
            return text
        return self.style.call(f"{self.runtime}.select", arguments, self.site.source.indentation(line))

    def selection(self, choice: Choice, indentation: str, top: bool) -> tuple[str, list[str]]:
        """The nested functions that a selection needs, and its arguments."""
        functions: list[str] = []
        arguments = [
            self.conditions[id(choice.test)].inline
            if not (top and self.guard)
            else self.conditions[id(choice.test)].tensor
        ]
        for side, wanted in ((choice.true, "if_true"), (choice.false, "if_false")):
            if isinstance(side, Arm) and not self.is_expression(side):
                name = self.name(wanted, side)
                functions.append(self.function(side, name, indentation))
                arguments.append(name)
            elif isinstance(side, Choice) and not all(self.is_expression(arm) for arm in side.arms()):
                name = self.name(wanted, side)
                inner = indentation + self.style.unit
                nested, call = self.selection(side, inner, top=False)
                newline = self.site.source.newline
                body = nested + f"{inner}return " + self.call_text(call, inner, len("return "))
                functions.append(f"{indentation}def {name}():{newline}{body}{newline}{newline}")
                arguments.append(name)
            else:
                arguments.append(self.lambda_of(side))
        return "".join(functions), [*arguments, *self.options]

    def call_text(self, arguments: Sequence[str], indentation: str, used: int) -> str:
        """The call of ``select`` behind ``used`` characters on a line."""
        line = f"{self.runtime}.select({', '.join(arguments)})"
        if "\n" not in line and len(indentation) + used + len(line) <= self.length:
            return line
        newline, inner = self.site.source.newline, indentation + self.style.unit
        flat = ", ".join(arguments)
        if "\n" not in flat and len(inner) + len(flat) <= self.length:
            return f"{self.runtime}.select({newline}{inner}{flat}{newline}{indentation})"
        lines = "".join(f"{inner}{argument},{newline}" for argument in arguments)
        return f"{self.runtime}.select({newline}{lines}{indentation})"

    def statement(self, arguments: Sequence[str], indentation: str) -> str:
        """The statement that uses the selection."""
        branch = self.branch
        if branch.outcome is Outcome.RETURN:
            return "return " + self.call_text(arguments, indentation, len("return "))
        if branch.outcome is Outcome.CALL:
            return self.common_call(arguments, indentation)
        left = ", ".join(target.text for target in branch.targets) + " = "
        return left + self.call_text(arguments, indentation, len(left))

    def common_call(self, arguments: Sequence[str], indentation: str) -> str:
        """The call that both sides end in, with the selection as its argument."""
        call = self.branch.call
        assert call is not None
        source = self.site.source

        def given(inner: str | None) -> list[str]:
            flat = inner is None
            selection = (
                f"{self.runtime}.select({', '.join(arguments)})" if flat else self.call_text(arguments, inner or "", 0)
            )
            texts = [selection if each is self.branch.argument else source.segment(each) for each in call.args]
            for each in call.keywords:
                word = f"{each.arg}=" if each.arg else "**"
                texts.append(word + (selection if each.value is self.branch.argument else source.segment(each.value)))
            return texts

        callee, newline = source.segment(call.func), source.newline
        line = f"{callee}({', '.join(given(None))})"
        if "\n" not in line and len(indentation) + len(line) <= self.length:
            return line
        inner = indentation + self.style.unit
        lines = "".join(f"{inner}{text},{newline}" for text in given(inner))
        return f"{callee}({newline}{lines}{indentation})"

    # ---------------------------------------------------------------- arms

    def is_expression(self, arm: Arm) -> bool:
        """Whether an arm can be a lambda: nothing is left to run but its results."""
        return not arm.kept

    def lambda_of(self, side: Side) -> str:
        """A side as a lambda."""
        if isinstance(side, Choice):
            arms = ", ".join([self.lambda_of(side.true), self.lambda_of(side.false), *self.options])
            return f"lambda: {self.runtime}.select({self.conditions[id(side.test)].inline}, {arms})"
        texts = [self.result_text(side, position) for position in range(len(side.results))]
        text = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        return f"lambda: {text}"

    def result_text(self, arm: Arm, position: int) -> str:
        """A result as an expression."""
        value = arm.results[position]
        if value is None:
            return self.branch.targets[position].name
        text = expression_text(self.site, value)
        self.copied.append(self.site.source.span(value))
        if isinstance(value, ast.Tuple) and not text.startswith("("):
            return f"({text})"
        return text

    def name(self, wanted: str, side: Side) -> str:
        """A name for the nested function of a side."""
        key = (
            id(side.statements[0])
            if isinstance(side, Arm) and side.statements
            else id(side.test if isinstance(side, Choice) else side)
        )
        return fresh_local(self.site.function, wanted, key)

    def function(self, arm: Arm, name: str, indentation: str) -> str:
        """A nested function that runs an arm's statements and returns its results."""
        newline, inner = self.site.source.newline, indentation + self.style.unit
        parameters = ", ".join(f"{each}={each}" for each in self.rebound(arm))
        body = self.body(arm, inner)
        lead = newline if isinstance(arm.statements[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else ""
        return f"{indentation}def {name}({parameters}):{newline}{lead}{body}{newline}{newline}"

    def rebound(self, arm: Arm) -> list[str]:
        """The names that an arm reads with their value from outside and also assigns: parameters with a default."""
        kept, own = arm.kept, set()
        for statement in kept:
            own |= accessed([statement]).writes
        inside = {id(node) for statement in arm.statements for node in ast.walk(statement)}
        found: list[str] = []
        for name in sorted(own):
            sites = [
                statement for statement in _simple_statements(arm.statements) if name in accessed([statement]).reads
            ]
            definitions = [item for each in sites for item in self.frame.names.definitions(name, each) or [None]]
            if any(not _is_inside(item, inside) for item in definitions) or self.left_open(name, arm):
                found.append(name)
        return found

    def left_open(self, name: str, arm: Arm) -> bool:
        """Whether a result is returned by name and the arm may have left the name alone."""
        positions = [index for index, target in enumerate(self.branch.targets) if target.name == name]
        if not positions or arm.results[positions[0]] is not None:
            return False
        return not any(name in accessed([statement]).writes for statement in arm.kept if not hasattr(statement, "body"))

    def body(self, arm: Arm, indentation: str) -> str:
        """The statements of an arm at a new indentation, the folded ones turned into ``return``."""
        source = self.site.source
        returned = self.returned(arm)
        first, last = arm.statements[0], arm.statements[-1]
        start, end = self.arm_span(arm)
        old = source.indentation(source.position(start)[0])
        changes: list[tuple[int, int, str]] = []
        for position, statement in enumerate(arm.folded):
            span = source.span(statement)
            if isinstance(statement, ast.Return):
                continue
            if position == len(arm.folded) - 1:
                changes.append((*span, returned))
            else:
                changes.append((*self.whole_lines(span), ""))
        text, at = "", start
        for begin, stop, replacement in changes:
            text += source.text[at:begin] + replacement
            at = stop
        text += source.text[at:end]
        if not arm.folded:
            text += f"{source.newline}{old}{returned}"
        self.copied.append((start, end))
        if source.position(source.span(first)[0])[0] == self.header_line(arm):
            return self.separate(arm, indentation, returned)
        del last
        return reindent(text, old, indentation)

    def separate(self, arm: Arm, indentation: str, returned: str) -> str:
        """The body of an arm that stands on the line of its header: one line for each statement."""
        texts = [self.site.source.segment(statement) for statement in arm.kept]
        final = arm.folded[-1] if arm.folded else None
        texts.append(self.site.source.segment(final) if isinstance(final, ast.Return) else returned)
        return self.site.source.newline.join(indentation + text for text in texts)

    def returned(self, arm: Arm) -> str:
        """The statement that returns the results."""
        texts = [self.result_text(arm, position) for position in range(len(arm.results))]
        return f"return {', '.join(texts)}"

    def arm_span(self, arm: Arm) -> Span:
        """From an arm's first statement, with the comments above it, to the end of its last line."""
        source = self.site.source
        start, end = source.span(arm.statements[0])[0], source.span(arm.statements[-1])[1]
        line = source.position(start)[0]
        while line - 1 > self.header_line(arm) and source.line(line - 1).strip().startswith("#"):
            line -= 1
        if line != source.position(start)[0]:
            start = source.line_starts[line - 1] + len(source.indentation(line))
        line = source.position(end)[0]
        rest = source.line(line)[source.position(end)[1] - 1 :]
        if rest.strip().startswith("#"):
            end += len(rest.rstrip())
        return start, end

    def header_line(self, arm: Arm) -> int:
        """The last line in front of an arm that belongs to something else: its header, or a statement."""
        first = arm.statements[0]
        parent = self.site.parents.get(id(first), self.site.function.node)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and any(each is first for each in statements):
                position = next(index for index, each in enumerate(statements) if each is first)
                if position:
                    return statements[position - 1].end_lineno or 0
                if block == "orelse":
                    before = parent.body[-1].end_lineno or 0  # type: ignore[attr-defined]
                    line = self.site.source.position(self.site.source.span(first)[0])[0]
                    for number in range(line, before, -1):
                        if self.site.source.line(number).strip().startswith("else"):
                            return number
                    return before
                test = getattr(parent, "test", None)
                return test.end_lineno if test is not None else getattr(parent, "lineno", 0)
        return getattr(parent, "lineno", 0)

    def whole_lines(self, span: Span) -> Span:
        """A statement's span with the white space and the newline around it, where it has its lines to itself."""
        source = self.site.source
        start, end = span
        first, last = source.position(start)[0], source.position(end)[0]
        stop = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
        alone = not source.text[source.line_starts[first - 1] : start].strip() and not source.text[end:stop].strip()
        if not alone:
            return span
        return start, min(
            stop + len(source.indentation(last + 1)) if last < len(source.line_starts) else stop, len(source.text)
        )

    # ---------------------------------------------------------------- comments

    def comments(self, start: int, end: int) -> list[str]:
        """The comments of the replaced text that the new text does not hold."""
        source = self.site.source
        first, last = source.position(start)[0], source.position(end)[0]
        begin = source.line_starts[first - 1]
        text = source.text[begin : source.line_starts[last] if last < len(source.line_starts) else len(source.text)]
        found: list[str] = []
        for token in _tokens(text):
            if token.type != tokenize.COMMENT:
                continue
            offset = source.line_starts[first - 1 + token.start[0]] + token.start[1]
            if not start <= offset < end or any(a <= offset < b for a, b in self.copied):
                continue
            found.append(token.string)
        return found


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of some whole lines, with lines counted from 0."""
    code = io.StringIO(f"if 1:\n{text}\n", newline="")
    tokens = tokenize.generate_tokens(code.readline)
    return [token._replace(start=(token.start[0] - 2, token.start[1])) for token in tokens]


def _simple_statements(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements and those inside them, without nested functions."""
    found: list[ast.stmt] = []
    for statement in statements:
        found.append(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for block in ("body", "orelse", "finalbody"):
            found += _simple_statements(getattr(statement, block, []))
    return found


def _is_inside(item: object, inside: set[int]) -> bool:
    node = getattr(item, "statement", item)
    return node is not None and id(node) in inside


_GIVEN: WeakKeyDictionary[Function, dict[tuple[str, int], str]] = WeakKeyDictionary()


def fresh_local(function: Function, wanted: str, place: int) -> str:
    """A name that means nothing in a function and the functions around it; the same place always gets the same."""
    given = _GIVEN.setdefault(function, {})
    known = given.get((wanted, place))
    if known is None:
        outermost = function
        while outermost.parent is not None:
            outermost = outermost.parent
        used = {node.id for node in ast.walk(outermost.node) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(outermost.node) if isinstance(node, ast.arg)}
        used |= {node.name for node in ast.walk(outermost.node) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        used |= {*keyword.kwlist, *function.module.bindings, *given.values()}
        known, number = wanted, 2
        while known in used:
            known, number = f"{wanted}_{number}", number + 1
        given[wanted, place] = known
    return known
