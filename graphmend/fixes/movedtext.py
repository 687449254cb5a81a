"""The text of a statement on its way into a function: condition split, expressions renamed, lines indented."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphmend.findings import Edit
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.style import reindent
from graphmend.flow.values import Kind
from graphmend.obligations import Obligation
from graphmend.source.edits import make_edit

Replacement = tuple[ast.expr, str]
"""An expression of the text and what stands in its place."""

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
    start, end = source.span(statement)[0], source.span(test)[1]
    lost = (
        comment
        for comment, offset in _comments(source.text[start:end], start)
        if not any(a <= offset < b for a, b in spans)
    )
    return Header(text, tuple(values[:count]), tuple(values[count:]), tuple(lost))


def _depends(site: Site, node: ast.expr) -> bool:
    """Whether a condition may depend on what is in a tensor; what is not known stays in front of the call."""
    return any(
        site.facts.value(each).may(Kind.TENSOR | Kind.SCALAR)
        for each in ast.walk(node)
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


def _comments(text: str, start: int) -> Iterator[tuple[str, int]]:
    """The comments in a piece of code, which may end anywhere, with their offsets."""
    starts = [0]
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                yield token.string.rstrip(), start + starts[token.start[0] - 1] + token.start[1]
    except (tokenize.TokenError, IndentationError):
        return


# -------------------------------------------------------------------- where a statement ends


def own_end(site: Site, statement: ast.stmt) -> int:
    """The end of a compound statement, with the comment behind it and the comments that its block ends with."""
    source = site.source
    end = source.span(statement)[1]
    number = source.position(end)[0]
    line = source.line(number)
    rest = line[end - source.line_starts[number - 1] :]
    if rest.strip() and not rest.lstrip().startswith("#"):
        return end
    end += len(rest.rstrip())
    outer = source.indentation(statement.lineno)
    while number < len(source.line_starts):
        number += 1
        line = source.line(number)
        indentation = source.indentation(number)
        if not line.strip().startswith("#") or not indentation.startswith(outer) or len(indentation) <= len(outer):
            break
        end = source.line_starts[number - 1] + len(line.rstrip())
    return end


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
    block = source.text[source.line_starts[line] : end]
    block = block[len(inner) :] if block.startswith(inner) else block.lstrip(" \t")
    comments = [comment for comment, _ in _comments(source.line(line).lstrip(), 0)]
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
        return reindent(text, old, indentation)
    assert isinstance(moved, ast.If)
    start, end = source.span(moved)[0], own_end(site, moved)
    keyword_end = start + (4 if source.text.startswith("elif", start) else 2)
    test_start, test_end = source.span(moved.test)
    opening, closing = _parentheses(source.text[keyword_end:test_start], source.text[test_end:end])
    condition = _condition(site, moved.test, header, spans)
    if condition is not None:
        if opening:
            keyword_end, test_end = test_start, test_end + closing
        lead = " " if opening else source.text[keyword_end:test_start]
        condition = f"({condition})" if opening and ("\n" in condition or "\r" in condition) else condition
        text = f"if{lead}{condition}{_spliced(site, test_end, end, spans)}"
    else:
        text = "if" + _spliced(site, keyword_end, end, spans)
    return reindent(text, old, indentation)


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
            parts += site.source.text[position:first], text
            position = last
    return "".join([*parts, site.source.text[position:end]])


def _spans(site: Site, replacements: Sequence[Replacement]) -> Iterator[tuple[int, int, str]]:
    """The stretches of the text that change, with their new text."""
    source = site.source
    strings: dict[int, tuple[ast.JoinedStr, list[Replacement]]] = {}
    for node, text in replacements:
        outer = _string_around(site, node)
        if outer is None:
            yield (*source.span(node), text)
        else:
            strings.setdefault(id(outer), (outer, []))[1].append((node, text))
    for outer, inner in strings.values():
        yield from _in_string(site, outer, inner)


def _string_around(site: Site, node: ast.expr) -> ast.JoinedStr | None:
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
    return text if _string_around(site, node) is None or _is_text_of(text, node) else ast.unparse(node)


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
