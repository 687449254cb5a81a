"""The text of one file, and the way from the parser's positions to characters.

The parser counts columns in UTF-8 bytes and starts lines at CR, LF and CRLF only; people and SARIF count characters.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from graphmend.findings import Range

_NEWLINE = re.compile(r"\r\n|\r|\n")


class Spanned(Protocol):
    """Anything with the position attributes of a syntax tree node."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class DecodeError(ValueError):
    """The bytes of a file are not text in the encoding that the file declares."""


@dataclass(frozen=True)
class SourceText:
    """The decoded text of a file together with what is needed to write it back byte for byte.

    Args:
        path: the path as reported to people.
        text: the characters, newlines untouched, without a byte order mark.
        encoding: the declared or default encoding (PEP 263).
        bom: whether the bytes began with a UTF-8 byte order mark.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def decode(cls, path: str, data: bytes) -> SourceText:
        """Decode a file as Python does (byte order mark, coding line, UTF-8).

        Raises:
            DecodeError: the coding line names no codec, or the bytes do not fit it.
        """
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            bom = data.startswith(codecs.BOM_UTF8)
            return cls(path, data.decode("utf-8-sig" if bom else encoding), "utf-8" if bom else encoding, bom)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise DecodeError(str(error)) from error

    def encode(self, text: str) -> bytes:
        """The bytes of ``text`` in this file's encoding, with its byte order mark."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        if "\r" not in self.text:
            return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))][:-1]
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    @cached_property
    def newline(self) -> str:
        """The newline that the file uses first, or LF."""
        match = _NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def line(self, number: int) -> str:
        """The text of a 1-based line without its newline."""
        start = self.line_starts[number - 1]
        match = _NEWLINE.search(self.text, start)
        return self.text[start : match.start() if match else len(self.text)]

    def offset(self, line: int, utf8_column: int) -> int:
        """The character offset of a parser position (1-based line, 0-based column in UTF-8 bytes)."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.text)
        text = self.text[start:end]
        if text.isascii():
            return start + utf8_column
        return start + len(text.encode("utf-8")[:utf8_column].decode("utf-8", "ignore"))

    def span(self, node: Spanned) -> tuple[int, int]:
        """The character offsets of a node, end exclusive."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Spanned) -> str:
        """The text of a node as written."""
        start, end = self.span(node)
        return self.text[start:end]

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column, in characters, of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def range(self, start: int, end: int) -> Range:
        """The reported range of two offsets."""
        return Range(*self.position(start), *self.position(end))

    def indentation(self, line: int) -> str:
        """The white space at the start of a 1-based line."""
        text = self.line(line)
        return text[: len(text) - len(text.lstrip(" \t\f"))]
