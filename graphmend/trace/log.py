"""Reads what ``TORCH_LOGS=graph_breaks`` writes, of torch 2.6 to 2.14, whatever else is in the file.

One record is one message of several lines. The formats are those of ``torch/_dynamo/symbolic_convert.py``
(``log_graph_break``) and ``convert_frame.py``:

- ``Graph break in user code at PATH:LINE``, a reason, and under ``User code traceback:`` the way there. Told again it
  says ``(user stack suppressed due to duplicate graph break)``, or ``(details suppressed)`` up to torch 2.7, and has no
  traceback. What is repeated is the innermost place; that another statement led to it is not told.
- ``Graph break: skip: from user code at:`` and, later, ``Graph break: torch.compile cannot properly resume from this
  graph break, which results in a skip.`` with a traceback: a whole frame was left to Python. The id is not among it.
- ``torch._dynamo hit config.recompile_limit`` (``cache_size_limit`` before 2.7), a warning that is always written: from
  there on the frame is left to Python, too.
- ``Skipping frame because there is a graph break in a for/while loop`` up to torch 2.12, if ``dynamo`` is among
  ``TORCH_LOGS`` as well; before 2.7 nothing else tells of a branch on a tensor in a loop.
- ``torch.compile intentionally decided to skip the frame``, likewise.

``Graph break from `Tensor.item()`, consider setting`` is advice that comes beside such a record, and is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from graphmend.errors import UserError

_PREFIX = re.compile(
    r"(?P<rank>\[rank\d+\]:)?(?P<level>[VDIWEC])\d{4} [\d:.]+ (?P<process>\d+) (?P<place>[^\]]*:\d+)\]"
    r"(?P<marks>(?: \[[^\]\s]*\])*)(?: |$)"
)
"""How torch begins each line of a message; continuous integration and launchers may put their own in front of it."""
_ARTIFACT = re.compile(r"\[__(\w+)\]")
_BREAK = re.compile(r"Graph break (?:\([^)]*\) )?in user code at (?P<path>.+):(?P<line>\d+)\s*$")
_SKIP = re.compile(r"Graph break: (?:skip: from user code at:|torch\.compile cannot properly resume )")
_LIMIT = re.compile(r"torch\._dynamo hit config\.(?P<limit>\w*limit) ")
_LOOP = re.compile(r"Skipping frame because there is a graph break in a for/while loop")
_DECIDED = re.compile(r"torch\.compile (?:intentionally decided to|will) skip the frame ")
_HEADS = (_BREAK, _SKIP, _LIMIT, _LOOP, _DECIDED)
_REASON = re.compile(r"(?:Graph Break )?Reason: (?P<text>.*)")
_STACK = re.compile(r"User code traceback:|The graph break occurred in the following user code:|.*from user code at:")
_FRAME = re.compile(r'\s*File "(?P<path>.+)", line (?P<line>\d+)(?:, in (?P<function>.*))?$')
_RAISED = re.compile(r"(?:torch\._dynamo\.exc\.)?Unsupported: (?P<text>.*)")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_GB = re.compile(r"/gb(\d+)\.html")
_SKIPPED = re.compile(
    r"(?:frame skipped: |skip (?:tracing )?the frame )(?P<function>\S+) \((?P<path>.+) line (?P<line>\d+)\)"
)
_SUMMARY = re.compile(r"<FrameSummary file (?P<path>.+), line (?P<line>\d+) in (?P<function>.+)>")
_LIMITED = re.compile(r"function: '(?P<function>[^']+)' \((?P<path>.+):(?P<line>\d+)\)")
_LEFT = ("Failed to handle graph break gracefully", "Skipping the function and falling back to eager")
"""What a reason begins with, or holds, if the whole frame is left to Python."""
_NOTHING_THERE = ("no content in function call", "No ops traced", "no tensor-related objects", "because no content")
"""Reasons to leave a frame to Python that cost nothing: there is no tensor operation in it."""
_CANNOT_RESUME = "a break from which Dynamo cannot go on in it"
_INTRODUCTIONS = ("Encountered graph break when attempting to trace", *_LEFT)
"""First lines of a reason that say nothing of the kind of break; that is in the next one."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One entry of a traceback.

    Attributes:
        path: the file as the log names it.
        line: the line in it, 1-based.
        function: the function, by its own name also where Dynamo resumes it.
        text: that line without its indentation, or empty if the log does not show it.
    """

    path: str
    line: int
    function: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class SkippedFrame:
    """A function that was left to Python as a whole, or what was left of it after an earlier break.

    Attributes:
        path: its file as the log names it.
        function: its name.
        line: where it begins, or where it would have been resumed.
        reason: why.
        is_rest: whether only what comes after an earlier break was left to Python.
    """

    path: str
    function: str
    line: int
    reason: str
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """One break of a graph.

    Attributes:
        path: the innermost place, which need not be in code of the user.
        line: the line there.
        stack: the way to it, the innermost frame last; empty if the log shows none.
        gb: the ids, the break's own first.
        reason: the kind of break.
        explanation: Dynamo's sentence on it, or empty.
        skips: whether a whole frame was left to Python because of it.
    """

    path: str
    line: int
    stack: tuple[StackFrame, ...]
    gb: tuple[str, ...] = ()
    reason: str = ""
    explanation: str = ""
    skips: bool = False


@dataclass(frozen=True, slots=True)
class Log:
    """What a log tells, in its order."""

    breaks: tuple[Break, ...]
    skipped: tuple[SkippedFrame, ...] = ()


def read_log(path: str) -> Log:
    """Reads a saved log. An empty file is the log of a run without breaks.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UserError(f"cannot read the log: {error.strerror or error}", path=path) from None
    # Windows' own shell writes what it redirects in UTF-16.
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
    if text.strip() and not any(_PREFIX.search(line) or _is_head(line) for line in text.splitlines()):
        raise UserError(
            "holds no log of graph breaks",
            path=path,
            hint="run the program with `TORCH_LOGS=graph_breaks` and keep what it writes to standard error",
        )
    return parse_log(text)


def parse_log(text: str) -> Log:
    """Reads the text of a log; see the module for what is understood."""
    return read_messages(_messages(text))


def read_messages(messages: Iterable[str]) -> Log:
    """Reads the messages of a run, one a record.

    Arguments:
        messages: their texts, in order; those of other kinds are passed over.
    """
    breaks: list[Break] = []
    skipped: dict[SkippedFrame, None] = {}
    known: dict[tuple[str, int], tuple[StackFrame, ...]] = {}
    for message in messages:
        found = _break(message)
        if found is not None:
            if found.stack:
                known[found.path, found.line] = found.stack
            else:
                found = replace(found, stack=known.get((found.path, found.line), ()))
            breaks.append(found)
        skipped |= dict.fromkeys(_skipped(message))
    return Log(tuple(breaks), tuple(skipped))


def _is_head(line: str) -> bool:
    return any(head.match(line) for head in _HEADS)


def _messages(text: str) -> Iterator[str]:
    """The messages of a log that may matter, each without what torch begins its lines with.

    Lines of several processes may be mixed. Without beginnings, as ``TORCH_LOGS_FORMAT`` may have it, a message goes on
    to the next one, whatever the program has written in between.
    """
    lines = text.splitlines()
    is_plain = any(map(_is_head, lines)) and "[__graph_breaks]" not in text
    current: dict[tuple[str, ...], list[str]] = {}
    order: list[list[str]] = []
    for whole in lines:
        line = whole
        key: tuple[str, ...] = ()
        if not is_plain:
            prefix = _PREFIX.search(whole)
            if prefix is None:
                continue
            artifact = _ARTIFACT.search(prefix["marks"])
            key = (prefix["rank"] or "", prefix["process"], prefix["place"], artifact[1] if artifact else "")
            for other in [each for each in current if each[:2] == key[:2] and each != key]:
                del current[other]  # a message is written in one go
            if key[3] not in ("", "graph_breaks"):
                continue
            line = whole[prefix.end() :]
        if _is_head(line):
            current[key] = [line]
            order.append(current[key])
        elif line.startswith("Graph break"):
            current.pop(key, None)
        elif key in current:
            current[key].append(line)
    for message in order:
        yield "\n".join(message)


def _break(message: str) -> Break | None:
    """The break that a message tells, if it tells one."""
    lines = message.splitlines()
    head = lines[0] if lines else ""
    summary = _SUMMARY.search(message) if _LOOP.match(head) else None
    if summary is not None:
        frame = StackFrame(summary["path"], int(summary["line"]), _own_name(summary["function"]))
        return Break(frame.path, frame.line, (frame,), reason="graph break in loop", skips=True)
    place = _BREAK.match(head)
    if place is None and not _SKIP.match(head):
        return None
    said, stack = _parts(lines)
    if place is None and not stack:
        return None
    path, line = (place["path"], int(place["line"])) if place else (stack[-1].path, stack[-1].line)
    reason, explanation = _reason(said)
    return Break(
        path,
        line,
        tuple(stack),
        tuple(dict.fromkeys(f"GB{number}" for number in _GB.findall(message))),
        reason,
        explanation,
        place is None or any(sign in message for sign in (*_LEFT, "frame skipped: ")),
    )


def _parts(lines: list[str]) -> tuple[list[str], list[StackFrame]]:
    """What a message says besides, and its traceback of user code."""
    said: list[str] = []
    stack: list[StackFrame] = []
    inside = False
    for line in lines:
        frame = _FRAME.match(line) if inside else None
        if frame is not None:
            stack.append(StackFrame(frame["path"], int(frame["line"]), _own_name(frame["function"] or "<module>")))
        elif _STACK.match(line):
            inside = True
        elif inside and line.startswith("    ") and stack:
            if not stack[-1].text:
                stack[-1] = replace(stack[-1], text=line.strip())
        elif inside and line.strip() and not line.startswith("====="):
            inside = False
            said.append(line)
        elif not inside:
            said.append(line)
    return said, stack


def _reason(said: list[str]) -> tuple[str, str]:
    """The kind of a break and Dynamo's explanation of it."""
    reason = explanation = ""
    wanted = False
    for line in said:
        start = _REASON.match(line) or _RAISED.match(line)
        text = start["text"].strip() if start else line.strip()
        if not reason and (start or (wanted and text)):
            wanted = text.startswith(_INTRODUCTIONS)
            reason = "" if wanted else text
        elif reason and not explanation and text.startswith("Explanation: "):
            explanation = text.removeprefix("Explanation: ")
    return reason, explanation


def _skipped(message: str) -> Iterator[SkippedFrame]:
    """The frames that a message says were left to Python."""
    head, _, rest = message.partition("\n")
    limit = _LIMIT.match(head)
    if limit is not None:
        frame = _LIMITED.search(message)
        if frame is not None:
            yield _frame(frame, f"compiled as often as `{limit['limit']}` allows")
    elif _DECIDED.match(head):
        frame, why = _SKIPPED.search(head), _REASON.match(rest)
        reason = why["text"].strip() if why else ""
        if frame is not None and not reason.startswith(_NOTHING_THERE):
            yield _frame(frame, reason)
    elif _BREAK.match(head) or _SKIP.match(head):
        for frame in _SKIPPED.finditer(message):
            yield _frame(frame, _CANNOT_RESUME)


def _frame(found: re.Match[str], reason: str) -> SkippedFrame:
    own = _own_name(found["function"])
    return SkippedFrame(found["path"], own, int(found["line"]), reason, own != found["function"])


def _own_name(function: str) -> str:
    """The name of a function, also where Dynamo resumes it."""
    resumed = _RESUMED.match(function)
    return resumed["name"] if resumed else function
