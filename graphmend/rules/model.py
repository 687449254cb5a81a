"""Rules as plain values, after a pack has been read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from graphmend.findings import Severity
from graphmend.obligations import Obligation


class Region(str, Enum):
    """Where a rule looks: only in code that is traced when compiled, or in the whole file."""

    TRACED = "traced"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True)
class BranchMatch:
    """Matches a branch on a value.

    Attributes:
        forms: the constructs, out of :data:`graphmend.rules.schema.FORMS`.
        tests: facts, out of :data:`graphmend.rules.schema.FACTS`; one of them must hold of the tested value.
        body: what the branch may do, out of :data:`graphmend.rules.schema.BODIES`; None for anything.
        captured: for assertions, whether Dynamo makes an operator of them; None for any.
    """

    forms: frozenset[str]
    tests: tuple[str, ...]
    body: frozenset[str] | None = None
    captured: bool | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """A condition on arguments of a call.

    Attributes:
        facts: one of them must hold of one of the arguments that are meant.
        position: the position, the receiver of a tensor's method being 0.
        onwards: whether the arguments behind it are meant as well.
        name: the keyword.
        any: whether every argument is meant.
        integers: whether the arguments are meant that torch takes as whole numbers.
    """

    facts: tuple[str, ...] = ()
    position: int | None = None
    onwards: bool = False
    name: str = ""
    any: bool = False
    integers: bool = False


@dataclass(frozen=True, slots=True)
class CallMatch:
    """Matches a call by what is called, never by how the call is spelled.

    Attributes:
        functions: qualified names (``warnings.warn``); a trailing ``.*`` stands for every function of a module.
        methods: names of methods; ``*`` stands for every method.
        receivers: the qualified names of the classes whose instances have the methods, or a fact (``tensor``).
        function_gb: identifiers of the graph breaks of a call of one of the functions.
        method_gb: identifiers of the graph breaks of a call of one of the methods.
        makes: what the call constructs: ``module``, ``parameter``.
        disabled: whether what is called is excluded from compilation (``torch.compiler.disable``).
        given: what must hold of arguments.
        without: arguments that must not be given.
        unless: what must not hold of arguments.
        twice: facts; the same name, of which one of them holds, must be given twice. Empty for anything.
    """

    functions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    function_gb: tuple[str, ...] = ()
    method_gb: tuple[str, ...] = ()
    makes: frozenset[str] = frozenset()
    disabled: bool = False
    given: tuple[Argument, ...] = ()
    without: tuple[Argument, ...] = ()
    unless: tuple[Argument, ...] = ()
    twice: tuple[str, ...] = ()

    def takes_function(self, qualified: str) -> bool:
        """Whether a call of the function with this qualified name matches."""
        module = qualified.rpartition(".")[0]
        return qualified in self.functions or (bool(module) and f"{module}.*" in self.functions)

    def takes_method(self, name: str) -> bool:
        """Whether a call of a method with this name, on a fitting receiver, matches."""
        return name in self.methods or "*" in self.methods


@dataclass(frozen=True, slots=True)
class AttributeMatch:
    """Matches the use of an attribute.

    Attributes:
        names: the attributes.
        owners: facts, or qualified names of classes; the object is one of them.
        access: ``read``, ``write``.
    """

    names: frozenset[str]
    owners: tuple[str, ...]
    access: frozenset[str]


@dataclass(frozen=True, slots=True)
class SubscriptMatch:
    """Matches indexing: ``x[index]``, ``x[:bound]``, ``x[index] = value``.

    Attributes:
        owners: facts, one of which must hold of what is indexed.
        index: facts, one of which must hold of one of the indices; empty for anything.
        bound: facts, one of which must hold of a bound of a slice; empty for anything.
        value: facts, one of which must hold of what is assigned; empty for anything.
        access: ``read``, ``write``.
    """

    owners: tuple[str, ...]
    index: tuple[str, ...]
    bound: tuple[str, ...]
    value: tuple[str, ...]
    access: frozenset[str]


@dataclass(frozen=True, slots=True)
class ContextMatch:
    """Matches entering a context manager: qualified names of functions that make one, or of classes."""

    managers: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatementMatch:
    """Matches whole statements, by their kind out of :data:`graphmend.rules.schema.STATEMENTS`."""

    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """Matches code that has the shape of a pattern.

    Attributes:
        pattern: an expression or a statement with metavariables (``$X``, ``$...ARGS``).
        where: pairs of a metavariable's name, without ``$``, and facts, one of which must hold of what it stands for.
    """

    pattern: str
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ArithmeticMatch:
    """Matches arithmetic: binary operators, signs and augmented assignments.

    Attributes:
        operands: facts, one of which must hold of an operand.
        without: facts, none of which may hold of an operand.
    """

    operands: tuple[str, ...]
    without: tuple[str, ...] = ()


Match = (
    BranchMatch
    | CallMatch
    | AttributeMatch
    | SubscriptMatch
    | ContextMatch
    | StatementMatch
    | ArithmeticMatch
    | PatternMatch
)


@dataclass(frozen=True, slots=True)
class FixSpec:
    """The rewrite that a rule asks for.

    Attributes:
        transform: the name of a verified transform, or None if the rule only has a template.
        arguments: arguments of the transform.
        replace: a template over the pattern's metavariables, or None.
        requires: the obligations that must hold; for a person, and checked against the transform's own list.
    """

    transform: str | None = None
    arguments: tuple[tuple[str, bool], ...] = ()
    replace: str | None = None
    requires: tuple[Obligation, ...] = ()

    def argument_map(self) -> Mapping[str, bool]:
        """The arguments by name."""
        return dict(self.arguments)


@dataclass(frozen=True, slots=True)
class RefusalSpec:
    """Why a rule has no fix: the obligation that nothing can discharge, and a sentence for a person."""

    obligation: Obligation
    reason: str


@dataclass(frozen=True, slots=True)
class Example:
    """A piece of code that shows and tests a rule.

    Attributes:
        bad: code that must be reported at each line that ends in a comment with the rule's code, or None.
        fixed: what ``--fix`` makes of ``bad``, or None if that is not pinned down.
        ok: code in which the rule must find nothing, or None.
        line: where the example starts in its pack.
    """

    bad: str | None
    fixed: str | None
    ok: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: unique code (``GM301``).
        name: unique name in kebab-case.
        summary: one line that says what the rule reports.
        severity: a fixed severity, or None if it follows the impact of each finding.
        skips_frame: whether Dynamo gives up on the frame wherever in it the break stands.
        gb: identifiers of the graph breaks in Dynamo's registry.
        torch: the versions of torch in which the code breaks the graph, like ``>=2.0,<3``.
        message: the text of a finding; may hold ``{callee}``, ``{test}``, ``{function}`` and names of metavariables.
        match: what is reported.
        region: where it is reported.
        fix: how it is mended, or None.
        refusal: why it is not, if there is no fix.
        explanation: Markdown for a person.
        examples: code that shows and tests the rule.
        source: path and line of its definition.
    """

    code: str
    name: str
    summary: str
    severity: Severity | None
    skips_frame: bool
    gb: tuple[str, ...]
    torch: str
    message: str
    match: Match
    region: Region
    fix: FixSpec | None
    refusal: RefusalSpec | None
    explanation: str
    examples: tuple[Example, ...]
    source: tuple[str, int]

    @property
    def observes(self) -> bool:
        """Whether it reports calls that only print, log or warn."""
        return isinstance(self.match, CallMatch) and self.fix is not None and self.fix.transform == "outline"


@dataclass(frozen=True, slots=True)
class RulePack:
    """The rules of one file, in its order."""

    path: str
    rules: tuple[Rule, ...]
