"""The shape of a rule pack: one description from which packs are read and the published JSON schema is made.

``rules/schema.json`` is the output of ``python -m graphmend.rules.schema``; a test keeps the two equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from graphmend.findings import Impact, Severity
from graphmend.obligations import Obligation

FORMS = (
    *("if", "elif", "while", "assert", "conditional-expression", "comprehension-filter", "match", "membership"),
    "value",
)
"""Constructs that ask for truth; ``value``: ``and``, ``or``, ``not`` and ``a < b < c`` outside of conditions."""

FACTS = (
    *(
        "tensor",
        "boolean-tensor",
        "leaf-tensor",
        "attribute-tensor",
        "computed-tensor",
        "position-tensor",
        "holds-tensor",
        "holds-computed",
        "scalar-read",
        "data",
    ),
    *("drawn-number", "numpy-number", "numpy-unknown", "size", "static", "text", "false", "not-true", "given"),
    *("module", "none", "unknown", "container", "sequence"),
)
"""Facts about a value that a rule may ask for (:mod:`graphmend.rules.holds` says what they mean)."""

BODIES = ("raises", "returns", "observes", "other")
"""What a branch does: its statements raise; it returns; it only prints, logs or warns; anything else."""

ACCESSES = ("read", "write")
"""How an attribute or an element is used."""

STATEMENTS = ("class", "guarded-import")
"""Statements that a rule may report as such; ``guarded-import``: of a module that may not be there, inside ``try``."""

MADE = ("module", "parameter")
"""What a call may construct."""

REGIONS = ("traced", "anywhere")
"""Where a rule looks."""

TRANSFORMS = ("outline", "predicate", "guard", "normalize")
"""The verified rewrites that a rule may name."""

IMPACTS = (Impact.SKIPS_FRAME.value,)
SEVERITIES = ("impact", *(severity.value for severity in Severity))
OBLIGATIONS = tuple(obligation.value for obligation in Obligation)

CODE = r"[A-Z]{1,8}[0-9]{1,5}"
NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
QUALIFIED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
ARGUMENT = r"any|\d+\+?|\d+:[A-Za-z_]\w*|[A-Za-z_]\w*"
VERSIONS = r"(>=|<=|==|!=|>|<)\d+(\.\d+)*(,(>=|<=|==|!=|>|<)\d+(\.\d+)*)*"


@dataclass(frozen=True)
class Text:
    """A string: any, one of a closed list, or one that matches a pattern as a whole."""

    choices: tuple[str, ...] = ()
    pattern: str = ""
    what: str = ""
    """What the pattern describes, for the error message."""


@dataclass(frozen=True)
class Truth:
    """A truth value."""


@dataclass(frozen=True)
class ListOf:
    """A list with at least one item."""

    item: Text | Record
    or_single: bool = False
    """Whether one item may stand alone, without the list."""


@dataclass(frozen=True)
class Record:
    """A mapping with known keys."""

    fields: Mapping[str, Field]
    one_of: tuple[str, ...] = ()
    """Keys of which at least one must be there; exactly one unless ``several``."""
    several: bool = False
    called: str = ""
    """What messages call it; the key that holds it when left out."""
    named_by: str = ""
    """The key whose value names it in messages."""


@dataclass(frozen=True)
class Free:
    """A mapping whose keys match a pattern."""

    keys: str
    what: str
    value: Text | ListOf


@dataclass(frozen=True)
class Following:
    """A mapping whose keys follow from the value of another key of the mapping around it."""

    key: str
    """The other key."""
    shapes: Mapping[str, Record]
    """The mapping for each value of the other key that allows one."""


@dataclass(frozen=True)
class Field:
    """One key of a mapping."""

    shape: Text | Truth | ListOf | Record | Free | Following
    doc: str
    required: bool = False


Shape = Text | Truth | ListOf | Record | Free | Following

_qualified = Text(pattern=QUALIFIED, what="a qualified name like `warnings.warn`")
_ids = ListOf(Text(pattern=r"GB\d{4}", what="an id like `GB0170`"))
_line = Text()
_owner = Text(pattern=rf"[a-z]+(-[a-z]+)*|{QUALIFIED}", what="a fact or a qualified name like `logging.Logger`")
_facts = ListOf(Text(choices=FACTS), or_single=True)
_argument = (
    "an argument: `any`, a position like `0`, those from one on like `1+`, a keyword, both like `1:dim`, or `integers`"
)

BRANCH = Record(
    {
        "forms": Field(ListOf(Text(choices=FORMS)), "The constructs.", required=True),
        "test": Field(_facts, "Facts, one of which must hold of the tested value.", required=True),
        "body": Field(ListOf(Text(choices=BODIES)), "What the branch does; anything when left out."),
        "captured": Field(Truth(), "For assertions: whether Dynamo makes an operator of them."),
    }
)
CALL = Record(
    {
        "function": Field(
            ListOf(
                Text(pattern=rf"{QUALIFIED}(\.\*)?", what="a qualified name like `warnings.warn` or `logging.*`"),
                or_single=True,
            ),
            "Qualified names of functions, resolved through imports; `module.*` stands for each function of a module.",
        ),
        "method": Field(
            ListOf(Text(pattern=r"\*|[A-Za-z_]\w*", what="the name of a method or `*`"), or_single=True),
            "Names of methods of `receiver`; `*` stands for each method.",
        ),
        "receiver": Field(
            ListOf(_owner, or_single=True),
            "The classes whose instances have the methods, or facts: `tensor`, `numpy-number`, `data`, `container`.",
        ),
        "function_gb": Field(_ids, "Those of the rule's ids that a call of a function has; all when left out."),
        "method_gb": Field(_ids, "Those of the rule's ids that a call of a method has; all when left out."),
        "makes": Field(ListOf(Text(choices=MADE), or_single=True), "What the call constructs."),
        "disabled": Field(Truth(), "What is called is excluded from compilation (`torch.compiler.disable`)."),
        "given": Field(
            Free(ARGUMENT, _argument, _facts),
            "Facts, one of which must hold of an argument: `any`, by position (the receiver of a tensor's method is 0),"
            " by keyword, or `integers` for those that torch takes as whole numbers.",
        ),
        "unless": Field(Free(ARGUMENT, _argument, _facts), "Facts, none of which may hold of an argument."),
        "twice": Field(_facts, "Facts, one of which must hold of a name that is given twice."),
        "without": Field(
            ListOf(Text(pattern=ARGUMENT, what=_argument), or_single=True), "Arguments that must not be given."
        ),
    },
    one_of=("function", "method", "makes", "disabled"),
    several=True,
)
ATTRIBUTE = Record(
    {
        "name": Field(
            ListOf(Text(pattern=r"[A-Za-z_]\w*", what="the name of an attribute"), or_single=True),
            "Names of attributes.",
            required=True,
        ),
        "of": Field(
            ListOf(_owner, or_single=True),
            "Facts, or classes, one of which the object must be.",
            required=True,
        ),
        "access": Field(ListOf(Text(choices=ACCESSES), or_single=True), "How it is used; `read` when left out."),
    }
)
SUBSCRIPT = Record(
    {
        "of": Field(
            ListOf(_owner, or_single=True),
            "Facts, or classes, one of which what is indexed must be; `tensor` when left out.",
        ),
        "index": Field(_facts, "Facts, one of which must hold of an index."),
        "bound": Field(_facts, "Facts, one of which must hold of a bound of a slice."),
        "value": Field(_facts, "Facts, one of which must hold of what is assigned."),
        "access": Field(ListOf(Text(choices=ACCESSES), or_single=True), "How it is used; `read` when left out."),
    },
    one_of=("index", "bound"),
    several=True,
)
CONTEXT = Record(
    {
        "manager": Field(
            ListOf(_qualified, or_single=True),
            "Qualified names of functions that make a context manager, or of its classes.",
            required=True,
        )
    }
)
ARITHMETIC = Record(
    {
        "operand": Field(_facts, "Facts, one of which must hold of an operand.", required=True),
        "without": Field(_facts, "Facts, none of which may hold of an operand."),
    }
)
MATCH = Record(
    {
        "branch": Field(BRANCH, "A branch on a value."),
        "call": Field(CALL, "A call of a function or method."),
        "attribute": Field(ATTRIBUTE, "The use of an attribute."),
        "subscript": Field(SUBSCRIPT, "An index or a slice."),
        "context": Field(CONTEXT, "Entering a context manager."),
        "arithmetic": Field(ARITHMETIC, "A binary operator, a sign, or an augmented assignment."),
        "statement": Field(ListOf(Text(choices=STATEMENTS), or_single=True), "Statements, by their kind."),
        "pattern": Field(_line, "Python code with metavariables: `$X` for one expression, `$...ARGS` for any number."),
        "where": Field(
            Free(r"\$[A-Z_][A-Z0-9_]*", "a metavariable like `$X`", _facts),
            "Facts, one of which must hold of what a metavariable stands for.",
        ),
        "region": Field(Text(choices=REGIONS), "Where the rule looks; `traced` when left out."),
    },
    one_of=("branch", "call", "attribute", "subscript", "context", "arithmetic", "statement", "pattern"),
)
ARGUMENTS = {
    "outline": Record(
        {"observes": Field(Truth(), "The matched call only prints, logs or warns, whatever it calls.", required=True)}
    ),
}
"""The arguments of each transform that takes some."""

FIX = Record(
    {
        "transform": Field(Text(choices=TRANSFORMS), "The name of a verified transform."),
        "with": Field(Following("transform", ARGUMENTS), "Arguments of the transform."),
        "replace": Field(_line, "Python code over the pattern's metavariables; unsafe unless a transform is named."),
        "requires": Field(ListOf(Text(choices=OBLIGATIONS)), "The obligations that must hold."),
    },
    one_of=("transform", "replace"),
    several=True,
)
REFUSAL = Record(
    {
        "obligation": Field(Text(choices=OBLIGATIONS), "The obligation that nothing can discharge.", required=True),
        "reason": Field(_line, "Why, and what a person would do.", required=True),
    }
)
EXAMPLE = Record(
    {
        "bad": Field(_line, "Code that is reported at each line that ends in a comment with the rule's code."),
        "fixed": Field(_line, "What `--fix` makes of `bad`, to the letter."),
        "ok": Field(_line, "Code in which the rule finds nothing."),
    },
    one_of=("bad", "ok"),
    called="the example",
)
RULE = Record(
    {
        "code": Field(Text(pattern=CODE, what="capitals and digits, like `ABC101`"), "Unique code.", required=True),
        "name": Field(Text(pattern=NAME, what="kebab-case"), "Unique name.", required=True),
        "summary": Field(_line, "One line that says what is reported.", required=True),
        "severity": Field(Text(choices=SEVERITIES), "`impact` (follows each finding's impact) when left out."),
        "impact": Field(
            Text(choices=IMPACTS), "`skips-frame` if Dynamo gives up on the frame wherever in it the break stands."
        ),
        "gb": Field(_ids, "Ids in Dynamo's graph-break registry."),
        "torch": Field(Text(pattern=VERSIONS, what="version bounds like `>=2.4,<3`"), "Versions in which it breaks."),
        "message": Field(
            _line, "Text of a finding, with `{callee}`, `{test}`, `{function}` or metavariables; else the summary."
        ),
        "match": Field(MATCH, "What is reported.", required=True),
        "fix": Field(FIX, "How it is mended."),
        "refusal": Field(REFUSAL, "Why it is not mended."),
        "explanation": Field(_line, "Markdown for a person."),
        "examples": Field(ListOf(EXAMPLE), "Code that shows and tests the rule."),
    },
    one_of=("fix", "refusal"),
    called="the rule",
    named_by="code",
)
PACK = Record({"rules": Field(ListOf(RULE), "The rules of this pack.", required=True)})


def json_schema() -> dict[str, object]:
    """Returns the JSON schema of rule packs."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphmend rule pack",
        **_schema(PACK),
    }


def _schema(shape: Shape) -> dict[str, object]:
    match shape:
        case Text(choices=(_, *_) as choices):
            return {"enum": list(choices)}
        case Text(pattern=pattern) if pattern:
            return {"type": "string", "pattern": f"^({pattern})$"}
        case Text():
            return {"type": "string", "pattern": r"\S"}
        case Truth():
            return {"type": "boolean"}
        case ListOf(item=item, or_single=or_single):
            listed = {"type": "array", "items": _schema(item), "minItems": 1}
            return {"anyOf": [_schema(item), listed]} if or_single else listed
        case Free(keys=keys, value=value):
            return {
                "type": "object",
                "patternProperties": {f"^({keys})$": _schema(value)},
                "additionalProperties": False,
                "minProperties": 1,
            }
        case Following():
            return {"type": "object"}
        case Record(fields=fields):
            return _object(shape, fields)


def _object(shape: Record, fields: Mapping[str, Field]) -> dict[str, object]:
    result: dict[str, object] = {
        "type": "object",
        "properties": {key: {**_schema(field.shape), "description": field.doc} for key, field in fields.items()},
        "additionalProperties": False,
    }
    required = [key for key, field in fields.items() if field.required]
    if required:
        result["required"] = required
    if shape.one_of:
        result["anyOf" if shape.several else "oneOf"] = [{"required": [key]} for key in shape.one_of]
    for key, field in fields.items():
        if isinstance(field.shape, Following):
            result |= _following(key, field.shape)
    return result


def _following(key: str, shape: Following) -> dict[str, object]:
    """What holds of a mapping in which ``key`` follows from another key."""

    def when(values: list[str]) -> dict[str, object]:
        return {"properties": {shape.key: {"enum": values}}, "required": [shape.key]}

    alone = {"if": when(list(shape.shapes)), "else": {"properties": {key: False}}}
    each = [
        {"if": when([value]), "then": {"properties": {key: _schema(record)}}} for value, record in shape.shapes.items()
    ]
    return {"allOf": [alone, *each]}


def main() -> None:
    """Prints the JSON schema."""
    print(json.dumps(json_schema(), indent=2))


if __name__ == "__main__":
    main()
