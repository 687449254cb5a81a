"""The text of a selection: the arms as lambdas or nested functions, the call, and what becomes of its value.

The arms' text is the source's own, with its comments; only its indentation may change.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from graphmend.findings import Edit, NewName
from graphmend.fixes.arms import Arm, Branch, Choice, Outcome, Side
from graphmend.fixes.comments import end_with_comment, end_with_comments
from graphmend.fixes.condition import Condition
from graphmend.fixes.emit import Style, reindent
from graphmend.fixes.expressions import argument_of, copied_span, expression_text
from graphmend.fixes.identifiers import names_of
from graphmend.fixes.layout import Argument, Call, breaks, closed
from graphmend.fixes.parentheses import spaced, with_grouping
from graphmend.fixes.remarks import Part, Remarks, remarks_of
from graphmend.fixes.site import Site
from graphmend.flow.frames import Frame
from graphmend.flow.names import accessed
from graphmend.model.tree import walk
from graphmend.source.edits import make_edit
from graphmend.source.text import SourceText

Span = tuple[int, int]


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
    names: list[NewName] = field(default_factory=list)
    """The names of nested functions."""

    @property
    def source(self) -> SourceText:
        """The text of the file."""
        return self.site.source

    @cached_property
    def span(self) -> Span:
        """The replaced text, with the comments that belong to the branch, and parentheses that only it needs."""
        first = self.branch.first
        start, end = self.source.span(first)[0], self.source.span(self.branch.last)[1]
        if isinstance(first, ast.expr):
            return with_grouping(self.source, start, end, comments=True)
        return start, end_with_comments(self.source, end, self.source.indentation(first.lineno))

    @cached_property
    def remarks(self) -> Remarks:
        """The comments of the replaced text that no copied text holds."""
        return remarks_of(self.source, self.branch, self.span, self.is_copied)

    def edit(self) -> Edit:
        """The replacement of the branch."""
        first = self.branch.first
        return self.expression() if isinstance(first, ast.expr) else self.statements(first)

    def statements(self, first: ast.stmt) -> Edit:
        """The replacement of an ``if`` and perhaps what follows it."""
        source, newline = self.source, self.source.newline
        heads, indentation = self.heads(first)
        functions, call = self.selection(self.branch.choice, indentation, top=True)
        comments = [] if self.guard else [indentation + comment for comment in self.lead()]
        lines = [*functions, *comments, indentation + self.statement(call, indentation)]
        start = source.line_starts[first.lineno - 1]
        if heads:
            lines = [*heads, *([""] if functions else []), *lines]
        elif functions:
            top = self.first_line(first)
            above = source.text[source.line_starts[top - 1] : start]
            lines[0] = above + lines[0]
            lines = lines if self.follows_blank(first, top) else ["", *lines]
            start = source.line_starts[top - 1]
        return make_edit(source, start, self.span[1], newline.join(lines))

    def heads(self, first: ast.stmt) -> tuple[list[str], str]:
        """The lines of what the selection stands in, and its indentation."""
        lines, indentation = [], self.source.indentation(first.lineno)
        if self.source.text.startswith("elif", self.source.span(first)[0]):
            # What was the last part of a chain becomes the body of an `else`.
            lines, indentation = [f"{indentation}else:"], indentation + self.style.unit
        if self.guard:
            lines += [indentation + comment for comment in self.lead()]
            lines.append(indentation + self.style.header("if", self.guard, indentation))
            indentation += self.style.unit
        return lines, indentation

    def lead(self) -> list[str]:
        """The comments in front of the statement: those about its condition, and about an only side."""
        choice = self.branch.choice
        parts: list[Part] = [choice.test]
        if not self.branch.has_else:
            parts += [arm for arm in choice.arms() if self.is_lambda(arm)]  # nested functions have theirs in front
        return self.remarks.all(*parts)

    def first_line(self, first: ast.stmt) -> int:
        """The line of the first of the comments directly above a statement, or of the statement."""
        line, indentation = first.lineno, self.source.indentation(first.lineno)
        while self.source.line(line - 1).startswith(f"{indentation}#"):
            line -= 1
        return line

    def follows_blank(self, first: ast.stmt, line: int) -> bool:
        """Whether a nested function that begins in a line, in place of the branch, needs no blank line before it."""
        source, body = self.source, getattr(self.site.function.node, "body", None)
        is_first = isinstance(body, list) and body[0] is first
        outdented = len(source.indentation(line - 1)) < len(source.indentation(first.lineno))
        return (is_first and outdented) or not source.line(line - 1).strip()

    # ---------------------------------------------------------------- the selection

    def expression(self) -> Edit:
        """The selection in the place of a conditional expression."""
        source, (start, end) = self.source, self.span
        line, column = source.position(start)
        indentation, behind = source.indentation(line), self.behind(end)
        choice = self.branch.choice
        call = self.call(choice)
        test = replace(call.arguments[0], above=self.remarks.above(choice.test))
        call = replace(call, arguments=[test, *call.arguments[1:]])
        text = self.style.lay_out(call, indentation, column - 1 - len(indentation) + len(behind))
        stop = self.own_lines(start, end)
        if stop is None or not breaks(text):
            return make_edit(source, start, end, spaced(source, start, end, text))
        inner, rest = indentation + self.style.unit, source.text[end:stop].strip()
        lines = ["", inner + self.style.lay_out(call, inner), *([inner + rest] if rest else []), indentation]
        return make_edit(source, start, stop, source.newline.join(lines))

    def behind(self, end: int) -> str:
        """What stands behind a place on its line, without a comment."""
        line, column = self.source.position(end)
        return self.source.line(line)[column - 1 :].partition("#")[0].rstrip()

    def own_lines(self, start: int, end: int) -> int | None:
        """Where the brackets close that are directly around the conditional expression, if it can be broken there.

        It can if it is the only argument of a call that the line ends with, or the element of a comprehension.
        """
        source, first = self.source, self.branch.first
        if source.text[:start].endswith("(") and self.behind(end) == ")":
            return end
        parent = self.site.parents.get(id(first))
        if isinstance(parent, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and parent.elt is first:
            outer = source.span(parent)
            if outer[0] + 1 == start and not breaks(source.segment(parent)):
                return outer[1] - 1
        return None

    def selection(self, choice: Choice, indentation: str, top: bool) -> tuple[list[str], Call]:
        """The lines of the nested functions that a selection needs, with blank lines behind, and the call."""
        functions: list[str] = []
        arguments = [self.condition(choice, top)]
        for side, wanted in ((choice.true, "if_true"), (choice.false, "if_false")):
            if self.is_lambda(side):
                arguments.append(self.lambda_of(side))
                continue
            name = self.name(wanted, side)
            functions += [*(indentation + comment for comment in self.comments_above(side))]
            if isinstance(side, Arm):
                functions += [self.function(side, name, indentation), ""]
            else:
                functions += [f"{indentation}def {name}():", *self.choosing(side, indentation + self.style.unit), ""]
            arguments.append(Argument(name))
        return functions, Call(f"{self.runtime}.select", [*arguments, *self.given_options()])

    def choosing(self, choice: Choice, indentation: str) -> list[str]:
        """The lines of a function that returns what a choice inside a side comes to."""
        functions, call = self.selection(choice, indentation, top=False)
        return [*functions, f"{indentation}return {self.style.lay_out(call, indentation, len('return '))}"]

    def call(self, choice: Choice) -> Call:
        """The selection of a choice whose arms are expressions."""
        arguments = [self.condition(choice, top=False), self.lambda_of(choice.true), self.lambda_of(choice.false)]
        return Call(f"{self.runtime}.select", [*arguments, *self.given_options()])

    def given_options(self) -> list[Argument]:
        """The keyword arguments of a selection."""
        return [Argument(option) for option in self.options]

    def condition(self, choice: Choice, top: bool) -> Argument:
        """The test of a choice as an argument."""
        test, condition = choice.test, self.conditions[id(choice.test)]
        text = condition.tensor if top and self.guard else condition.inline
        indentation = self.source.indentation(test.lineno)
        lines = Argument(text, lines=text if breaks(text) else "", indentation=indentation)
        argument = argument_of(self.source, test) if self.is_plain(test) else lines
        return argument if top else replace(argument, behind=self.remarks.behind(test), below=self.remarks.below(test))

    def is_plain(self, test: ast.expr) -> bool:
        """Whether a test is given as it is written."""
        condition = self.conditions[id(test)]
        return not condition.static and not condition.rewritten

    def is_copied(self, part: Part, offset: int, comment: str) -> bool:
        """Whether the text of a part holds a comment of the source."""
        if isinstance(part, Arm):
            return any(start <= offset < end for start, end in self.copied_spans(part))
        start, end = copied_span(self.source, part)
        return start <= offset < end and (self.is_plain(part) or comment in self.conditions[id(part)].inline)

    def copied_spans(self, arm: Arm) -> list[Span]:
        """The ranges of the source that an arm copies."""
        if not self.is_lambda(arm):
            return [self.source.span(each) for each in arm.kept] if self.is_in_header(arm) else [self.arm_span(arm)]
        return [copied_span(self.source, result) for result in arm.results if result is not None]

    def comments_above(self, side: Side) -> list[str]:
        """The comments in front of a nested function."""
        return self.remarks.all(side) if isinstance(side, Arm) else self.remarks.above(side.test)

    def statement(self, call: Call, indentation: str) -> str:
        """The statement that uses the selection."""
        branch = self.branch
        if branch.call is not None:
            return self.style.lay_out(self.common_call(branch.call, call), indentation)
        left = "return "
        if branch.outcome is Outcome.ASSIGN:
            left = ", ".join(target.text for target in branch.targets) + " = "
        return left + self.style.lay_out(call, indentation, len(left))

    def common_call(self, node: ast.Call, selection: Call) -> Call:
        """The call that both sides end in, with the selection as its argument."""

        def argument(value: ast.expr, prefix: str = "") -> Argument:
            if value is self.branch.argument:
                return Argument(selection, prefix)
            return argument_of(self.source, value, prefix)

        given = [argument(each) for each in node.args]
        given += [argument(each.value, f"{each.arg}=" if each.arg else "**") for each in node.keywords]
        return Call(self.source.segment(node.func), given)

    # ---------------------------------------------------------------- arms

    def is_lambda(self, side: Side) -> bool:
        """Whether a side can be a lambda: nothing is left to run but its results."""
        return not side.kept if isinstance(side, Arm) else all(self.is_lambda(arm) for arm in side.arms())

    def lambda_of(self, side: Side) -> Argument:
        """A side as a lambda."""
        if isinstance(side, Choice):
            return Argument(self.call(side), "lambda: ", above=self.remarks.above(side.test))
        value = side.results[0]
        if len(side.results) == 1 and value is not None:
            argument = argument_of(self.source, value, "lambda: ")
        else:
            argument = Argument(self.results_text(side), "lambda: ")
        if not self.branch.has_else:
            return argument
        remarks = self.remarks
        return replace(argument, above=remarks.above(side), behind=remarks.behind(side), below=remarks.below(side))

    def results_text(self, arm: Arm) -> str:
        """The results of an arm that has several, or none of its own, as one expression."""
        texts = [
            self.branch.targets[position].name if value is None else expression_text(self.source, value)
            for position, value in enumerate(arm.results)
        ]
        if len(texts) == 1:
            return texts[0]
        return f"({', '.join(_item(value, text) for value, text in zip(arm.results, texts))})"

    def name(self, wanted: str, side: Side) -> str:
        """A name for the nested function of a side."""
        node = side.test if isinstance(side, Choice) else side.statements[0]
        name = names_of(self.site.module).fresh_local(
            wanted, self.site.function, ("select", node.lineno, node.col_offset)
        )
        self.names.append(name)
        return name.given

    def function(self, arm: Arm, name: str, indentation: str) -> str:
        """A nested function that runs an arm's statements and returns its results."""
        newline, inner = self.source.newline, indentation + self.style.unit
        parameters = ", ".join(f"{each}={each}" for each in self.rebound(arm))
        lead = newline if isinstance(arm.statements[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else ""
        return f"{indentation}def {name}({parameters}):{newline}{lead}{self.body(arm, inner)}"

    def rebound(self, arm: Arm) -> list[str]:
        """The names that an arm reads with their value from outside and also assigns: parameters with a default."""
        kept, own = arm.kept, set()
        for statement in kept:
            own |= accessed([statement]).writes
        inside = {id(node) for statement in arm.statements for node in walk(statement)}
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
        if self.is_in_header(arm):
            return self.separate(arm, indentation, returned)
        return reindent(text, old, indentation)

    def is_in_header(self, arm: Arm) -> bool:
        """Whether an arm stands on the line of its header."""
        return self.source.position(self.source.span(arm.statements[0])[0])[0] == self.header_line(arm)

    def separate(self, arm: Arm, indentation: str, returned: str) -> str:
        """The body of an arm that stands on the line of its header: one line for each statement."""
        texts = [self.site.source.segment(statement) for statement in arm.kept]
        final = arm.folded[-1] if arm.folded else None
        texts.append(self.site.source.segment(final) if isinstance(final, ast.Return) else returned)
        return self.site.source.newline.join(indentation + text for text in texts)

    def returned(self, arm: Arm) -> str:
        """The statement that returns the results."""
        texts = [
            self.branch.targets[position].name if value is None else self.copied(value)
            for position, value in enumerate(arm.results)
        ]
        if len(texts) > 1:
            texts = [_item(value, text) for value, text in zip(arm.results, texts)]
        return f"return {', '.join(texts)}"

    def copied(self, value: ast.expr) -> str:
        """An expression with its lines."""
        start, end = copied_span(self.source, value)
        return closed(self.source.text[start:end])

    def arm_span(self, arm: Arm) -> Span:
        """From an arm's first statement, with the comments above it, to the end of its last line."""
        source = self.site.source
        start, end = source.span(arm.statements[0])[0], source.span(arm.statements[-1])[1]
        line = source.position(start)[0]
        while line - 1 > self.header_line(arm) and source.line(line - 1).strip().startswith("#"):
            line -= 1
        if line != source.position(start)[0]:
            start = source.line_starts[line - 1] + len(source.indentation(line))
        own = source.indentation(source.position(start)[0])
        if len(own) <= len(source.indentation(self.branch.first.lineno)):
            return start, end_with_comment(source, end)
        return start, end_with_comments(source, end, own[:-1])

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


def _item(value: ast.expr | None, text: str) -> str:
    """The text of an expression as one of several."""
    return f"({text})" if isinstance(value, ast.Tuple) and not text.startswith("(") else text


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
