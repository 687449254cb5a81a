"""The last look at edits before they are applied: the file still parses, and what they do not touch is the same."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from graphmend.findings import Edit
from graphmend.source.edits import apply_edits
from graphmend.source.text import SourceText


def verify_edits(source: SourceText, edits: Sequence[Edit], tree: ast.Module | None = None) -> str | None:
    """Why some edits of one file must not be applied together; ``None`` if nothing speaks against them.

    The edited text must parse, and every statement that no edit touches must be in it unchanged, at the place where
    the edits move it to and inside the same functions, classes and blocks.

    Args:
        source: the text before.
        edits: the edits.
        tree: the tree of ``source``, if it is at hand.
    """
    edits = sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))
    for first, second in pairwise(edits):
        if second.start < first.end:
            return f"two edits overlap in line {second.range.line}"
    after = SourceText(source.path, apply_edits(source.text, edits), source.encoding, source.bom)
    try:
        source.encode(after.text)
        trees = tree or _parse(source.text), _parse(after.text)
    except UnicodeEncodeError as error:
        return f"the new text has characters that {source.encoding} cannot express ({error.reason})"
    except SyntaxError as error:
        return f"the result does not parse ({error.msg}, line {error.lineno})"
    strange = next((edit for edit in edits if not _is_round(edit.replacement)), None)
    if strange is not None:
        return f"the new text in line {strange.range.line} is not read as it is written"
    wanted: dict[tuple[int, int], str] = {}
    for (start, end), description in _statements(source, trees[0], lambda span: not _touched(span, edits)):
        # The text of a statement that no edit touches is the same; what remains to be seen is that it is still one.
        shift = sum(len(edit.replacement) - (edit.end - edit.start) for edit in edits if edit.end <= start)
        if not _touched((start, end), edits):
            wanted[start + shift, end + shift] = description
    found = {span: each for span, each in _statements(after, trees[1], wanted.__contains__) if span in wanted}
    if found != wanted:
        start, end = min(span for span in wanted if found.get(span) != wanted[span])
        return f"the statement in line {after.position(start)[0]} of the result would not be the same"
    return None


def _touched(span: tuple[int, int], edits: Sequence[Edit]) -> bool:
    return any(edit.start < span[1] and span[0] < edit.end for edit in edits)


@lru_cache(maxsize=2)  # what one pass ends with is what the next one begins with
def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are the file's own affair
        return ast.parse(text)


def _is_round(text: str) -> bool:
    """Whether new statements, with their comments and blank lines, come back unchanged from a concrete syntax tree."""
    block = text.strip("\r\n")
    if not block.startswith("@"):
        return True
    import libcst  # slow to load, and only needed where something is about to be written

    try:
        return libcst.parse_module(block).code == block
    except libcst.ParserSyntaxError:
        return False


def _statements(
    source: SourceText, tree: ast.Module, whole: Callable[[tuple[int, int]], bool]
) -> Iterator[tuple[tuple[int, int], str]]:
    """The spans of statements, with their kind and the path of blocks that leads to them.

    Of a statement for whose span ``whole`` holds, the statements inside are left out.
    """
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        owner, path = stack.pop()
        for field, value in ast.iter_fields(owner):
            for child in value if isinstance(value, list) else ():
                if isinstance(child, ast.stmt):
                    span, description = (
                        source.span(child),
                        f"{path}{field}/{type(child).__name__} {getattr(child, 'name', '')}",
                    )
                    yield span, description
                    if not whole(span):
                        stack.append((child, f"{description}/"))
                elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    stack.append((child, f"{path}{field}/{type(child).__name__}/"))
