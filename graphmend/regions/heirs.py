"""Files in which classes derive from those of other files: found in the text, since most files need not be parsed."""

from __future__ import annotations

import re
import sys

_BASES = re.compile(
    r"^[ \t]*(?:class\s+\w+\s*\([^)]*\)|(?:from|import)\s[^\n]* as \w[^\n]*|\w+ as \w+,?[ \t]*(?:#[^\n]*)?$)",
    re.MULTILINE,
)
"""Where a text names base classes, or gives something another name under which it may be one."""
_OWN = re.compile(r"^[ \t]*class\s+(\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def base_words(text: str) -> frozenset[str]:
    """The words of a text among which the names of base classes from other files are, or get another name there."""
    if "class " not in text:
        return frozenset()
    words = {word for found in _BASES.finditer(text) for word in _WORD.findall(found[0])}
    return frozenset(map(sys.intern, words - set(_OWN.findall(text))))
