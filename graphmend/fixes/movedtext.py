"""The text of a statement on its way into a function: condition split, expressions renamed, lines indented."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphmend.findings import Edit
from graphmend.fixes.comments import comments_in, end_with_comments
from graphmend.fixes.layout import one_line
from graphmend.fixes.parentheses import spaced, with_grouping
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.style import reindent, style_of
from graphmend.flow.values import Kind
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.source.edits import apply_edits, make_edit
from graphmend.source.text import SourceText

Replacement = tuple[ast.expr, str]
"""An expression of the text and what stands in its place."""

Span = tuple[int, int]

_LOOSE = (ast.IfExp, ast.Lambda, ast.NamedExpr)
_OPENING = re.compile(r"\s*((?:\(\s*)+)")
_CLOSING = re.compile(r"(?:\s*\))*")


@dataclass(frozen=True)
class Header:
    """The condition of an ``if``.

    Args:
        static: the text of the leading conditions that tracing decides; empty if there are none.
        decided: these conditions.
        dynamic: the conditions that move.
        comments: comments between the conditions that stand at no other place then.
    """

    static: str
    decided: tuple[ast.expr, ...]
    dynamic: tuple[ast.expr, ...]
    comments: tuple[str, ...] = ()


def header_of(site: Site, statement: ast.If) -> Header:
    """Split the condition of an ``if`` into what tracing decides and what it does not."""
    test = statement.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return Header("", (), (test,))
    values = test.values
    count = 0
    while count < len(values) - 1 and not _depends(site, values[count]):
        count += 1
    if not count:
        return Header("", (), (test,))
    source = site.source
    text = _joined([source.segment(value) for value in values[:count]], values[:count])
    if "\n" in text or "\r" in text:
        text = f"({text})"
    spans = [source.span(value) for value in values]
    start, end = source.span(test)
    lost = (
        comment
        for offset, comment in comments_in(source.text[start:end])
        if not any(a <= start + offset < b for a, b in spans)
    )
    return Header(text, tuple(values[:count]), tuple(values[count:]), tuple(lost))


def _depends(site: Site, node: ast.expr) -> bool:
    """Whether a condition may depend on what is in a tensor; what is not known stays in front of the call."""
    return any(
        site.facts.value(each).may(Kind.TENSOR | Kind.SCALAR)
        for each in walk(node)
        if isinstance(each, ast.expr) and _is_tested(each, node)
    )


def _is_tested(node: ast.expr, condition: ast.expr) -> bool:
    """Whether the truth of ``node`` is asked for by ``condition``."""
    match condition:
        case ast.BoolOp(values=values):
            return any(_is_tested(node, value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_tested(node, operand)
    return node is condition


def _joined(texts: Sequence[str], nodes: Sequence[ast.expr]) -> str:
    if len(texts) == 1:
        return texts[0]
    return " and ".join(f"({text})" if _binds_looser(node) else text for text, node in zip(texts, nodes))


def _binds_looser(node: ast.expr) -> bool:
    return isinstance(node, _LOOSE) or (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or))


# -------------------------------------------------------------------- where a statement ends


def own_end(site: Site, statement: ast.stmt) -> int:
    """The end of a compound statement, with the comment behind it and the comments that its block ends with."""
    source = site.source
    return end_with_comments(source, source.span(statement)[1], source.indentation(statement.lineno))


def after_else(site: Site, statement: ast.If, rest: Sequence[ast.stmt]) -> Edit:
    """The edit that puts the ``else`` side of a branch behind the branch."""
    source = site.source
    start, end = source.span(rest[0])[0], source.span(rest[-1])[1]
    if source.text.startswith("elif", start) and isinstance(rest[0], ast.If):
        return make_edit(source, start, end, source.text[start + 2 : end])
    word = _else_offset(site, source.span(statement.body[-1])[1], start)
    line = source.position(word)[0]
    if source.position(start)[0] == line:
        return make_edit(source, word, end, source.text[start:end])
    outer, inner = source.indentation(line), source.indentation(rest[0].lineno)
    end = end_with_comments(source, end, outer)
    block = source.text[source.line_starts[line] : end]
    block = block[len(inner) :] if block.startswith(inner) else block.lstrip(" \t")
    comments = [comment for _, comment in comments_in(source.line(line))]
    lead = "".join(f"{outer}{comment}{source.newline}" for comment in comments)
    return make_edit(source, source.line_starts[line - 1], end, lead + reindent(block, inner, outer))


def _else_offset(site: Site, start: int, end: int) -> int:
    text = site.source.text[start:end]
    for match in re.finditer(r"else|#[^\r\n]*", text):
        if match.group() == "else":
            return start + match.start()
    raise Refused(Obligation.SUPPORTED_FORM, "the `else` of the branch was not found")


# -------------------------------------------------------------------- new text


def moved_text(
    site: Site, moved: ast.stmt, header: Header | None, replacements: Sequence[Replacement], indentation: str
) -> str:
    """The text of a statement as the body of a function, without a last newline."""
    source = site.source
    spans = sorted(_spans(site, replacements))
    old = source.indentation(moved.lineno)
    if header is None:
        start, end = source.span(moved.value if isinstance(moved, ast.Expr) else moved)
        text = _spliced(site, start, end, spans)
        return _rejoined(site, moved, reindent(text, old, indentation))
    assert isinstance(moved, ast.If)
    start, end = source.span(moved)[0], own_end(site, moved)
    keyword_end = start + (4 if source.text.startswith("elif", start) else 2)
    test_start, test_end = source.span(moved.test)
    opening, closing = _parentheses(source.text[keyword_end:test_start], source.text[test_end:end])
    condition = _condition(site, moved.test, header, spans)
    if condition is not None:
        if opening:
            keyword_end, test_end = test_start, test_end + closing
        between = source.text[keyword_end:test_start]
        lead = " " if opening or not between else between
        condition = f"({condition})" if opening and ("\n" in condition or "\r" in condition) else condition
        text = f"if{lead}{condition}{_spliced(site, test_end, end, spans)}"
    else:
        text = "if" + _spliced(site, keyword_end, end, spans)
    return _rejoined(site, moved, reindent(text, old, indentation))


def _rejoined(site: Site, moved: ast.stmt, text: str) -> str:
    """Moved text in which the statements that were broken for want of space, and now have it, are on one line."""
    source, style = site.source, style_of(site.module)
    block = SourceText(source.path, f"if 1:{source.newline}{text}" if text[:1].isspace() else text)
    changes: list[Edit] = []
    for old, new in zip(_simple_statements([moved]), _simple_statements(ast.parse(block.text).body)):
        before, after = one_line(source.segment(old)), one_line(block.segment(new))
        if old.lineno == old.end_lineno or before is None or after is None:
            continue
        start, end = block.span(new)
        behind = block.line(block.position(end)[0])[block.position(end)[1] - 1 :]
        if not style.fits(source.indentation(old.lineno) + before):
            if style.fits(block.indentation(new.lineno) + after + behind):
                changes.append(make_edit(block, start, end, after))
    return apply_edits(block.text, changes)[len(block.text) - len(text) :]


def _simple_statements(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements in and below some statements that hold no others, in the order of the walk."""
    nodes = [node for statement in statements for node in walk(statement) if isinstance(node, ast.stmt)]
    return [node for node in nodes if not hasattr(node, "body")]


def _condition(site: Site, test: ast.expr, header: Header, spans: Sequence[tuple[int, int, str]]) -> str | None:
    """The new text of a condition that changes as a whole; ``None`` if at most parts of it do."""
    source = site.source
    if header.static:
        return _joined([_spliced(site, *source.span(node), spans) for node in header.dynamic], header.dynamic)
    start, end = source.span(test)
    return next((text for first, last, text in spans if (first, last) == (start, end)), None)


def _parentheses(before: str, after: str) -> tuple[int, int]:
    """How many parentheses surround a condition and nothing else, and the length of the text that closes them."""
    match = _OPENING.fullmatch(before)
    if match is None:
        return 0, 0
    count = match.group(1).count("(")
    closing = re.match(rf"(?:\s*\)){{{count}}}", after)
    return (count, closing.end()) if closing else (0, 0)


def _spliced(site: Site, start: int, end: int, spans: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    position = start
    for first, last, text in spans:
        if position <= first and last <= end:
            start, stop, replacement = _regrouped(site.source, (position, end), (first, last), text)
            parts += site.source.text[position:start], replacement
            position = stop
    return "".join([*parts, site.source.text[position:end]])


def _regrouped(source: SourceText, around: Span, span: Span, text: str) -> tuple[int, int, str]:
    """A replacement without the parentheses that what is replaced needed, if it is a name."""
    first, last = with_grouping(source, *span)
    if not text.isidentifier() or not (around[0] <= first and last <= around[1]):
        first, last = span
    return first, last, spaced(source, first, last, text)


def _spans(site: Site, replacements: Sequence[Replacement]) -> Iterator[tuple[int, int, str]]:
    """The stretches of the text that change, with their new text."""
    source = site.source
    strings: dict[int, tuple[ast.JoinedStr, list[Replacement]]] = {}
    for node, text in replacements:
        outer = string_around(site, node)
        if outer is None:
            yield (*source.span(node), text)
        else:
            strings.setdefault(id(outer), (outer, []))[1].append((node, text))
    for outer, inner in strings.values():
        yield from _in_string(site, outer, inner)


def string_around(site: Site, node: ast.AST) -> ast.JoinedStr | None:
    """The outermost f-string that holds a node."""
    found: ast.JoinedStr | None = None
    for _, parent in site.ancestors(node):
        if isinstance(parent, ast.JoinedStr):
            found = parent
        elif isinstance(parent, ast.stmt):
            break
    return found


def _in_string(site: Site, outer: ast.JoinedStr, replacements: Sequence[Replacement]) -> Iterator[tuple[int, int, str]]:
    """The changed stretches of an f-string.

    Python before 3.12 gives wrong positions for what is inside f-strings of several lines or parts: positions are
    believed if the text there is the expression; otherwise the string is rewritten as a tree.
    """
    source = site.source
    start, end = source.span(outer)
    spans: list[tuple[int, int, str]] = []
    for node, text in replacements:
        first, last = source.span(node)
        if not (start < first and last < end) or not _is_text_of(source.text[first:last], node):
            yield start, end, _rewritten(source.text[start:end], replacements)
            return
        if re.match(r"\s*=(?!=)", source.text[last:end]):
            raise _shown(node)
        spans.append((first, last, text))
    yield from spans


def text_of(site: Site, node: ast.expr) -> str:
    """The text of an expression, also where its position inside an f-string is not to be believed."""
    if isinstance(node, ast.Name):
        return node.id
    text = site.source.segment(node)
    return text if string_around(site, node) is None or _is_text_of(text, node) else ast.unparse(node)


def _is_text_of(text: str, node: ast.expr) -> bool:
    try:
        return ast.dump(ast.parse(f"({text})", mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return False


def _shown(node: ast.expr) -> Refused:
    return Refused(
        Obligation.MOVABLE_TEXT, f"the message shows the text `{ast.unparse(node)}` itself (`=` in an f-string)"
    )


def _rewritten(text: str, replacements: Sequence[Replacement]) -> str:
    """An f-string with some of its expressions replaced, through libcst."""
    import libcst

    wanted = {ast.dump(node): (node, name) for node, name in replacements}
    module = libcst.Module([])

    class Rewrite(libcst.CSTTransformer):
        def on_visit(self, node: libcst.CSTNode) -> bool:
            return self.replacement(node) is None

        def on_leave(  # type: ignore[override]
            self, original_node: libcst.CSTNode, updated_node: libcst.CSTNode
        ) -> libcst.CSTNode:
            name = self.replacement(original_node)
            if name is not None:
                return libcst.Name(name)
            if isinstance(original_node, libcst.FormattedStringExpression) and original_node.equal is not None:
                if not original_node.deep_equals(updated_node):
                    raise _shown(next(iter(wanted.values()))[0])
            return updated_node

        def replacement(self, node: libcst.CSTNode) -> str | None:
            if not isinstance(
                node,
                (
                    libcst.Name,
                    libcst.Attribute,
                    libcst.Subscript,
                    libcst.Call,
                    libcst.BinaryOperation,
                    libcst.Comparison,
                    libcst.UnaryOperation,
                    libcst.BooleanOperation,
                    libcst.IfExp,
                ),
            ):
                return None
            try:
                key = ast.dump(ast.parse(f"({module.code_for_node(node)})", mode="eval").body)
            except SyntaxError:
                return None
            return wanted[key][1] if key in wanted else None

    try:
        tree = libcst.parse_expression(f"({text})")
    except libcst.ParserSyntaxError as error:
        raise Refused(Obligation.SUPPORTED_FORM, "the string has a form that cannot be rewritten") from error
    changed = tree.visit(Rewrite())
    assert isinstance(changed, libcst.BaseExpression)
    return module.code_for_node(changed).removeprefix("(").removesuffix(")")
