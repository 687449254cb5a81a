"""What a run reports: findings, fixes, refusals and errors.

These are plain values. They hold no syntax trees and no open files, so they can be cached, compared and serialised.
Positions are 1-based, columns count characters, and the end is exclusive, as in the JSON output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(str, Enum):
    """How loud a finding is; the order of the members is from loud to quiet."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the loudest."""
        return list(Severity).index(self)


class Confidence(str, Enum):
    """How much of a finding is proven.

    ``high``: tensor-ness and reachability are proven; ``medium``: one of them is inferred from names, annotations or
    callers; ``low``: neither is.
    """

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the most certain."""
        return list(Confidence).index(self)


class Impact(str, Enum):
    """What the break costs, from where it sits in the traced frame."""

    SKIPS_FRAME = "skips-frame"
    SPLITS_GRAPH = "splits-graph"
    FULLGRAPH_ONLY = "fullgraph-only"


class Applicability(str, Enum):
    """Whether a fix is applied by ``--fix`` alone (safe) or only with ``--unsafe-fixes``."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Seen(str, Enum):
    """Whether a run that was watched broke the graph at the statement of a finding."""

    CONFIRMED = "confirmed"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A stretch of a file: 1-based lines and columns in characters, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of the call chain that brings a statement into a compiled region."""

    path: str
    line: int
    function: str
    is_launch: bool = False
    """Whether it is the code that hands the next one to ``torch.compile``, and not part of the region."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replacement of the characters ``start`` to ``end`` (0-based offsets, end exclusive) of one file's text.

    ``path`` is relative like :attr:`Finding.path`; ``range`` says the same place in lines and columns.
    """

    path: str
    start: int
    end: int
    replacement: str
    range: Range


@dataclass(frozen=True, slots=True)
class Proof:
    """One obligation of a fix and why it holds: proven ``statically`` or ``checked at trace time``, or ``assumed``."""

    obligation: str
    how: str
    detail: str


@dataclass(frozen=True, slots=True)
class NewName:
    """A name that a fix makes up: ``given``, made of ``wanted`` so that no other planned fix has the same."""

    wanted: str
    given: str
    scope: str = ""
    """The qualified name of the function that it is local to; empty for a name of the module."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite whose obligations all hold. The edits belong together: all are applied, or none."""

    transform: str
    applicability: Applicability
    proof: tuple[Proof, ...]
    edits: tuple[Edit, ...]
    changes: str = ""
    """For an unsafe fix, what it changes in the program's behaviour."""
    names: tuple[NewName, ...] = ()
    """The names in ``edits`` that are new; those of the fixes that are applied are numbered without gaps."""
    limits: str = ""
    """When the mended code breaks the graph all the same; empty for never."""
    is_step: bool = False
    """Whether it only prepares another fix, for what it leaves."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a finding has no fix: the transform that was tried, the obligation that failed, and a word to a person."""

    transform: str
    obligation: str
    reason: str
    line: int | None = None
    """The line that made the obligation fail, if it is another one than the finding's."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A statement that would break the graph, in a frame that is skipped before tracing gets there."""

    path: str
    range: Range
    rule: str
    message: str
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement that breaks the graph, the rule that says so, and its fix or the refusal of one."""

    rule: str
    name: str
    path: str
    range: Range
    severity: Severity
    confidence: Confidence
    impact: Impact
    message: str
    region: tuple[Frame, ...]
    gb: tuple[str, ...] = ()
    fix: Fix | None = None
    refusal: Refusal | None = None
    suppressed: bool = False
    note: str = ""
    withheld: bool = False
    """Whether a fix is applied on request only, since a program wrote the file."""
    """A remark for a person, such as where a generated file comes from."""
    source_line: str = ""
    """The text of the first line, for reports and fingerprints."""
    holds: tuple[Range, ...] = ()
    """The messages in the branch, which are no findings of their own."""
    seen: Seen | None = None
    """What a run says of it; ``None`` if none was watched."""
    behind: tuple[Behind, ...] = ()
    """What tracing does not get to since this one has the whole frame skipped, and what has no fix of its own."""

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        """Findings are reported in this order."""
        return (self.path, self.range.line, self.range.column, self.rule)


@dataclass(frozen=True, slots=True)
class BreakSite:
    """A statement at which a run broke the graph, however often, as Dynamo told it.

    Attributes:
        path: as in :attr:`Finding.path`.
        line: the first line of the statement.
        end_line: the last one, of a compound statement that of its header.
        function: the function that it stands in.
        gb: the ids that Dynamo gives such a break; empty if it told none.
        reason: its name for such a break.
        explanation: what it says about it, or empty.
        skips_frame: whether it left a whole function to Python because of it, at least once.
        inside: where it broke, if that is in code that the statement calls and that was not linted.
        named: the lines that Dynamo named.
        count: how often it was told.
        source_line: the text of the first line.
    """

    path: str
    line: int
    end_line: int
    function: str
    gb: tuple[str, ...] = ()
    reason: str = ""
    explanation: str = ""
    skips_frame: bool = False
    inside: Frame | None = None
    named: tuple[int, ...] = ()
    count: int = 1
    source_line: str = ""


@dataclass(frozen=True, slots=True)
class FileError:
    """Something the tool could not do: one clear message with its place. Makes the exit code 2."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file whose text the fixes changed."""

    path: str
    before: str
    after: str
    count: int
    """How many fixes were applied."""
    limits: tuple[str, ...] = ()
    """Where the graph still breaks at some of them (:attr:`Fix.limits`)."""


@dataclass(frozen=True, slots=True)
class RuntimeCopy:
    """A copy of the runtime that mended files import.

    ``before`` is the text of the file that it replaces, ``None`` if there is none.
    """

    path: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run, ready to be printed."""

    findings: tuple[Finding, ...]
    errors: tuple[FileError, ...] = ()
    fixed: tuple[FixedFile, ...] = ()
    runtimes: tuple[RuntimeCopy, ...] = ()
    files: int = 0
    """How many files were looked at."""
    paths: tuple[str, ...] = ()
    """The files that were looked at."""
    unexplained: tuple[BreakSite, ...] = ()
    """Where a run that was watched broke the graph and no finding says why."""
    seconds: float = field(default=0.0, compare=False)
