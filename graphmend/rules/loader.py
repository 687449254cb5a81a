"""Loads rule packs: the built-in ones, and files of the user's own."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphmend.discover import display_path
from graphmend.errors import PackError, did_you_mean
from graphmend.findings import Impact, Severity
from graphmend.obligations import Obligation
from graphmend.rules.model import (
    Argument,
    ArithmeticMatch,
    AttributeMatch,
    BranchMatch,
    CallMatch,
    ContextMatch,
    Example,
    FixSpec,
    Match,
    PatternMatch,
    RefusalSpec,
    Region,
    Rule,
    RulePack,
    StatementMatch,
    SubscriptMatch,
)
from graphmend.rules.pattern import PatternError, parse_pattern
from graphmend.rules.reader import Document
from graphmend.rules.reader import Path as Place
from graphmend.rules.schema import FACTS, PACK


def builtin_paths() -> tuple[Path, ...]:
    """Returns the files of the built-in packs: beside this module in a wheel, in ``rules/`` in a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "packs"
    folder = installed if installed.is_dir() else here.parent.parent / "rules"
    return tuple(sorted(folder.glob("*.yaml")))


def load_rules(user_packs: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Loads the built-in packs and those of the user.

    Arguments:
        user_packs: paths of further packs.

    Returns:
        All rules; their codes and names are unique.

    Raises:
        PackError: a pack cannot be read, is no valid pack, or repeats a code or a name.
    """
    packs = [load_pack(path) for path in builtin_paths()]
    packs += [load_pack(path) for path in dict.fromkeys(user_packs)]
    rules = tuple(rule for pack in packs for rule in pack.rules)
    _check_unique(rules)
    return rules


def load_pack(path: str | Path) -> RulePack:
    """Loads one pack.

    Raises:
        PackError: the file cannot be read or is no valid pack.
    """
    shown = display_path(str(path))
    if shown.startswith("../"):
        shown = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PackError(f"cannot read the rule pack: {error.strerror}", path=shown) from None
    except UnicodeDecodeError as error:
        raise PackError(f"the rule pack is not UTF-8: {error.reason}", path=shown) from None
    return parse_pack(text, shown)


def parse_pack(text: str, path: str) -> RulePack:
    """Reads the text of a pack.

    Arguments:
        text: the YAML.
        path: where it comes from, for errors and :attr:`Rule.source`.

    Raises:
        PackError: the text is no valid pack.
    """
    document = Document(text, path, PACK)
    raw_rules: list[dict[str, Any]] = document.value["rules"]
    rules = tuple(_Reader(document, ("rules", index), raw).rule() for index, raw in enumerate(raw_rules))
    _check_unique(rules)
    return RulePack(path, rules)


def _check_unique(rules: Iterable[Rule]) -> None:
    seen: dict[str, Rule] = {}
    for rule in rules:
        for kind, key in (("code", rule.code), ("name", rule.name)):
            first = seen.setdefault(key, rule)
            if first is not rule:
                path, line = rule.source
                place = f"{first.source[0]}:{first.source[1]}"
                raise PackError(f"the {kind} `{key}` is already taken by the rule at {place}", path=path, line=line)


class _Reader:
    """Turns the checked values of one rule into a :class:`Rule`, and checks what the shape cannot say."""

    def __init__(self, document: Document, at: Place, raw: dict[str, Any]) -> None:
        self.document = document
        self.at = at
        self.raw = raw

    def error(self, *keys: str | int, message: str, hint: str = "") -> PackError:
        return self.document.error((*self.at, *keys), message, hint)

    def rule(self) -> Rule:
        raw = self.raw
        match = self.match()
        severity = raw.get("severity", "impact")
        return Rule(
            code=raw["code"],
            name=raw["name"],
            summary=raw["summary"].strip(),
            severity=None if severity == "impact" else Severity(severity),
            skips_frame=raw.get("impact") == Impact.SKIPS_FRAME.value,
            gb=tuple(raw.get("gb", ())),
            torch=raw.get("torch", ""),
            message=self.message(match),
            match=match,
            region=Region(raw["match"].get("region", Region.TRACED.value)),
            fix=self.fix(match),
            refusal=self.refusal(),
            explanation=raw.get("explanation", "").strip(),
            examples=tuple(self.example(index, example) for index, example in enumerate(raw.get("examples", ()))),
            source=(self.document.path, self.document.line(self.at)),
        )

    def match(self) -> Match:
        raw = self.raw["match"]
        if "where" in raw and "pattern" not in raw:
            raise self.error("match", "where", message="`where` needs a `pattern`")
        if "branch" in raw:
            return self.branch(raw["branch"])
        if "call" in raw:
            return self.call(raw["call"])
        if "attribute" in raw:
            return self.attribute(raw["attribute"])
        if "subscript" in raw:
            return self.subscript(raw["subscript"])
        if "context" in raw:
            return ContextMatch(frozenset(raw["context"]["manager"]))
        if "arithmetic" in raw:
            arithmetic = raw["arithmetic"]
            return ArithmeticMatch(tuple(arithmetic["operand"]), tuple(arithmetic.get("without", ())))
        if "statement" in raw:
            return StatementMatch(frozenset(raw["statement"]))
        return self.pattern(raw)

    def branch(self, branch: dict[str, Any]) -> BranchMatch:
        if "captured" in branch and branch["forms"] != ["assert"]:
            raise self.error("match", "branch", "captured", message="`captured` is for assertions alone")
        body = branch.get("body")
        return BranchMatch(
            frozenset(branch["forms"]),
            tuple(branch["test"]),
            None if body is None else frozenset(body),
            branch.get("captured"),
        )

    def attribute(self, attribute: dict[str, Any]) -> AttributeMatch:
        return AttributeMatch(
            frozenset(attribute["name"]),
            self.owners("attribute", attribute["of"]),
            frozenset(attribute.get("access", ("read",))),
        )

    def owners(self, kind: str, owners: Sequence[str]) -> tuple[str, ...]:
        """The facts and classes, one of which an object must be."""
        for index, owner in enumerate(owners):
            if "." not in owner and owner not in FACTS:
                hint = did_you_mean(owner, FACTS) or "the name of a class has a module in front"
                raise self.error("match", kind, "of", index, message=f"unknown fact `{owner}`", hint=hint)
        return tuple(owners)

    def subscript(self, subscript: dict[str, Any]) -> SubscriptMatch:
        access = frozenset(subscript.get("access", ("read",)))
        if "value" in subscript and access != {"write"}:
            raise self.error("match", "subscript", "value", message="`value` needs `access: write`")
        return SubscriptMatch(
            self.owners("subscript", subscript.get("of", ("tensor",))),
            tuple(subscript.get("index", ())),
            tuple(subscript.get("bound", ())),
            tuple(subscript.get("value", ())),
            access,
        )

    def call(self, call: dict[str, Any]) -> CallMatch:
        if "method" in call and "receiver" not in call:
            raise self.error("match", "call", "method", message="`method` needs a `receiver`")
        if "receiver" in call and "method" not in call:
            raise self.error("match", "call", "receiver", message="`receiver` needs a `method`")
        return CallMatch(
            tuple(call.get("function", ())),
            tuple(call.get("method", ())),
            tuple(call.get("receiver", ())),
            self.ids(call, "function"),
            self.ids(call, "method"),
            frozenset(call.get("makes", ())),
            call.get("disabled", False),
            tuple(_argument(selector, tuple(facts)) for selector, facts in call.get("given", {}).items()),
            tuple(_argument(selector, ()) for selector in call.get("without", ())),
            tuple(_argument(selector, tuple(facts)) for selector, facts in call.get("unless", {}).items()),
            tuple(call.get("twice", ())),
        )

    def ids(self, call: dict[str, Any], what: str) -> tuple[str, ...]:
        """The graph breaks of a call of a function or method: some of the rule's."""
        key, known = f"{what}_gb", tuple(self.raw.get("gb", ()))
        if key in call and what not in call:
            raise self.error("match", "call", key, message=f"`{key}` needs a `{what}`")
        for index, each in enumerate(call.get(key, ())):
            if each not in known:
                raise self.error("match", "call", key, index, message=f"`{each}` is not in the `gb` of the rule")
        return tuple(call.get(key, known))

    def pattern(self, raw: dict[str, Any]) -> PatternMatch:
        names = self.metavariables(raw["pattern"], "match", "pattern")
        where = raw.get("where", {})
        for key in where:
            if key.removeprefix("$") not in names:
                raise self.error("match", "where", key, message=f"`{key}` does not occur in the pattern")
        return PatternMatch(
            raw["pattern"].strip(), tuple((key.removeprefix("$"), tuple(facts)) for key, facts in where.items())
        )

    def metavariables(self, text: str, *keys: str) -> frozenset[str]:
        try:
            return parse_pattern(text).metavariables
        except PatternError as error:
            raise self.error(*keys, message=f"bad pattern: {error}") from None

    def message(self, match: Match) -> str:
        text: str = self.raw.get("message", "").strip()
        if not text:
            return _escape(self.raw["summary"].strip())
        known = {"function"}
        match match:
            case BranchMatch():
                known.add("test")
            case CallMatch() | ContextMatch():
                known.add("callee")
            case AttributeMatch() | SubscriptMatch() | ArithmeticMatch():
                known.add("code")
            case PatternMatch(pattern=pattern):
                known |= self.metavariables(pattern, "match", "pattern")
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
        except ValueError as error:
            raise self.error("message", message=f"bad placeholder: {error}") from None
        for field in fields:
            if field not in known:
                hint = f"known here: {', '.join(f'{{{name}}}' for name in sorted(known))}"
                raise self.error("message", message=f"unknown placeholder `{{{field}}}`", hint=hint)
        return text

    def fix(self, match: Match) -> FixSpec | None:
        raw = self.raw.get("fix")
        if raw is None:
            return None
        replace: str | None = raw.get("replace")
        if replace is not None:
            self.check_template(replace, match)
        return FixSpec(
            transform=raw.get("transform"),
            arguments=tuple(raw.get("with", {}).items()),
            replace=None if replace is None else replace.strip(),
            requires=tuple(Obligation(name) for name in raw.get("requires", ())),
        )

    def check_template(self, replace: str, match: Match) -> None:
        if not isinstance(match, PatternMatch):
            raise self.error("fix", "replace", message="`replace` needs a `pattern` in `match`")
        known = parse_pattern(match.pattern).metavariables
        for name in sorted(self.metavariables(replace, "fix", "replace") - known):
            raise self.error("fix", "replace", message=f"`${name}` does not occur in the pattern")

    def refusal(self) -> RefusalSpec | None:
        raw = self.raw.get("refusal")
        return None if raw is None else RefusalSpec(Obligation(raw["obligation"]), raw["reason"].strip())

    def example(self, index: int, raw: dict[str, str]) -> Example:
        if "fixed" in raw and "bad" not in raw:
            raise self.error("examples", index, "fixed", message="`fixed` needs a `bad`")
        line = self.document.line((*self.at, "examples", index))
        return Example(raw.get("bad"), raw.get("fixed"), raw.get("ok"), line)


def _argument(selector: str, facts: tuple[str, ...]) -> Argument:
    """A condition on arguments, from how a pack names them (:data:`graphmend.rules.schema.ARGUMENT`)."""
    if selector in ("any", "integers"):
        return Argument(facts, any=selector == "any", integers=selector == "integers")
    position, _, name = selector.partition(":")
    if not position[0].isdigit():
        return Argument(facts, name=position)
    return Argument(facts, int(position.rstrip("+")), position.endswith("+"), name)


def _escape(text: str) -> str:
    """Makes a text safe for ``str.format``."""
    return text.replace("{", "{{").replace("}", "}}")
