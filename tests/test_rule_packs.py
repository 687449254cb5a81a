"""Rule packs: what may stand in one, what is said about mistakes, and the built-in ones."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from graphmend.errors import ConfigError, PackError
from graphmend.findings import Severity
from graphmend.obligations import Obligation
from graphmend.rules.loader import builtin_paths, load_pack, load_rules, parse_pack
from graphmend.rules.model import BranchMatch, CallMatch, PatternMatch, Region
from graphmend.rules.schema import MATCH, json_schema

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "rules" / "schema.json").read_text("utf-8"))

FULL = """\
rules:
  - code: ACME7
    name: dump-in-graph
    summary: "`{dump}` breaks the graph"
    severity: note
    gb: [GB0059, GB0007]
    torch: ">=2.1,<3"
    message: "`{callee}` breaks the graph in `{function}`"
    match:
      call:
        function: [acme.dump, "acme.debug.*"]
        function_gb: [GB0007]
        method: write
        receiver: acme.Sink
      region: anywhere
    fix:
      transform: outline
      with: {observes: true}
      requires: [value-unused]
    explanation: |
      ## What it does

      Words.
    examples:
      - bad: |
          dump()  # ACME7
        fixed: |
          dumped()
      - ok: |
          pass
  - code: ACME8
    name: old-selection
    summary: old selection
    match:
      pattern: acme.choose($P, $A, $...REST)
      where: {$P: tensor, $A: static}
    fix:
      replace: torch.where($P, $A, $A)
  - code: ACME9
    name: loop
    summary: a loop
    match:
      branch:
        forms: [while]
        test: tensor
        body: [other]
    refusal: {obligation: supported-form, reason: rewrite it by hand}
"""


def test_everything_in_a_pack_reaches_its_rule() -> None:
    pack = parse_pack(FULL, "own.yaml")
    call, pattern, branch = pack.rules
    assert (call.code, call.name, call.summary) == ("ACME7", "dump-in-graph", "`{dump}` breaks the graph")
    assert (call.severity, call.gb, call.torch, call.region) == (
        Severity.NOTE,
        ("GB0059", "GB0007"),
        ">=2.1,<3",
        Region.ANYWHERE,
    )
    assert call.message == "`{callee}` breaks the graph in `{function}`"
    assert call.match == CallMatch(
        ("acme.dump", "acme.debug.*"), ("write",), ("acme.Sink",), ("GB0007",), ("GB0059", "GB0007")
    )
    assert call.fix is not None
    assert (call.fix.transform, call.fix.requires) == ("outline", (Obligation.VALUE_UNUSED,))
    assert call.fix.argument_map() == {"observes": True}
    assert call.explanation == "## What it does\n\nWords."
    first, second = call.examples
    assert (first.bad, first.fixed, first.ok, first.line) == ("dump()  # ACME7\n", "dumped()\n", None, 25)
    assert (second.bad, second.fixed, second.ok) == (None, None, "pass\n")
    assert call.source == ("own.yaml", 2)
    assert pattern.match == PatternMatch("acme.choose($P, $A, $...REST)", (("P", ("tensor",)), ("A", ("static",))))
    assert pattern.fix is not None
    assert (pattern.fix.transform, pattern.fix.replace) == (None, "torch.where($P, $A, $A)")
    assert branch.match == BranchMatch(frozenset({"while"}), ("tensor",), frozenset({"other"}))
    assert branch.refusal is not None
    assert (branch.refusal.obligation, branch.refusal.reason) == (Obligation.SUPPORTED_FORM, "rewrite it by hand")
    assert (branch.severity, branch.region, branch.fix) == (None, Region.TRACED, None)


def test_without_a_message_the_summary_is_the_message() -> None:
    pattern = parse_pack(FULL, "own.yaml").rules[1]
    assert pattern.message.format() == "old selection"
    braces = parse_pack(FULL.replace("old selection", '"a {b}"'), "own.yaml").rules[1]
    assert braces.message.format() == "a {b}"


def test_a_call_is_matched_by_qualified_name() -> None:
    match = CallMatch(("acme.dump", "acme.debug.*"), ("*",), "acme.Sink")
    assert match.takes_function("acme.dump")
    assert match.takes_function("acme.debug.anything")
    assert not match.takes_function("acme.debug.deeper.anything")
    assert not match.takes_function("acme.other")
    assert not match.takes_function("dump")
    assert match.takes_method("anything")
    assert not CallMatch(methods=("write",), receivers=("acme.Sink",)).takes_method("read")


RULE = """\
rules:
  - code: A1
    name: a
    summary: s
    match: {call: {function: f}}
    fix: {transform: outline}
"""


def changed(old: str, new: str) -> str:
    assert old in RULE
    return RULE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "own.yaml:1:1: the file is empty"),
        ("rules: []\n", "own.yaml:1:8: `rules`: the list is empty"),
        ("rules:\n", "own.yaml:1:7: `rules` must be a list, not nothing"),
        ("rule: []\n", "own.yaml:1:1: unknown key `rule` (did you mean `rules`?)"),
        ("- 1\n", "own.yaml:1:1: the pack must be a mapping, not a list"),
        ("{}\n", "own.yaml:1:1: the pack lacks the key `rules`"),
        ("rules: [1]\n", "own.yaml:1:9: the rule must be a mapping, not `1`"),
        (changed("    summary: s\n", ""), "own.yaml:2:5: the rule `A1` lacks the key `summary`"),
        (changed("summary", "sumary"), "own.yaml:4:5: unknown key `sumary` (did you mean `summary`?)"),
        (changed("summary: s", "summary: 1"), "own.yaml:4:14: `summary` must be a string, not `1` (put it in quotes)"),
        (changed("summary: s", "summary: ''"), "own.yaml:4:14: `summary` is empty"),
        (changed("summary: s", "name: b"), "own.yaml:4:5: the key `name` occurs twice"),
        (changed("code: A1", "code: a1"), "own.yaml:2:11: `code`: `a1` is not capitals and digits"),
        (changed("name: a", "name: A b"), "own.yaml:3:11: `name`: `A b` is not kebab-case"),
        (changed("outline", "outlin"), "own.yaml:6:22: `transform`: unknown value `outlin` (did you mean `outline`?)"),
        (changed("outline", "x"), "`transform`: unknown value `x` (one of outline,"),
        (
            changed("{transform: outline}", "{transform: outline, requires: [value-used]}"),
            "own.yaml:6:42: `requires`: unknown value `value-used` (did you mean `value-unused`?)",
        ),
        (changed("{transform: outline}", "{}"), "own.yaml:6:10: `fix` needs `transform` or `replace`"),
        (changed("    fix: {transform: outline}\n", ""), "own.yaml:2:5: the rule `A1` needs `fix` or `refusal`"),
        (
            RULE + "    refusal: {obligation: identity, reason: r}\n",
            "own.yaml:7:14: the rule `A1` takes only one of `fix` or `refusal`",
        ),
        (
            changed("{call: {function: f}}", "{}"),
            f"own.yaml:5:12: `match` needs {' or '.join(f'`{key}`' for key in MATCH.one_of)}",
        ),
        (changed("function: f", "function: 'f('"), "`function`: `f(` is not a qualified name"),
        (changed("function: f", "method: f"), "own.yaml:5:28: `method` needs a `receiver`"),
        (changed("function: f", "function: f, receiver: tensor"), "`receiver` needs a `method`"),
        (changed("{call: {function: f}}", "{pattern: 'f('}"), "own.yaml:5:22: bad pattern: no valid Python"),
        (changed("{call: {function: f}}", "{pattern: f($x)}"), "a metavariable is `$` and a name in capitals"),
        (changed("{call: {function: f}}", "{pattern: f($X; 1)}"), "own.yaml:5:22: bad pattern"),
        (changed("{call: {function: f}}", "{pattern: 'f(); g()'}"), "bad pattern: a pattern is one expression or one"),
        (changed("{call: {function: f}}", "{pattern: 'f($X, $...X)'}"), "`$X` and `$...X` cannot both be used"),
        (changed("{call: {function: f}}", "{pattern: '$...X + 1'}"), "`$...X` can only stand among arguments"),
        (
            changed("{call: {function: f}}", "{pattern: f($X), where: {$Y: tensor}}"),
            "own.yaml:5:41: `$Y` does not occur in the pattern",
        ),
        (
            changed("{call: {function: f}}", "{pattern: f($X), where: {$X: tensr}}"),
            "unknown value `tensr` (did you mean `tensor`?)",
        ),
        (changed("{call: {function: f}}", "{pattern: f($X), where: {X: tensor}}"), "`X` is not a metavariable like"),
        (changed("{function: f}}", "{function: f}, where: {$X: tensor}}"), "`where` needs a `pattern`"),
        (changed("{transform: outline}", "{replace: g()}"), "own.yaml:6:20: `replace` needs a `pattern`"),
        (
            changed("{call: {function: f}}", "{pattern: f($X)}").replace("{transform: outline}", "{replace: g($Y)}"),
            "own.yaml:6:20: `$Y` does not occur in the pattern",
        ),
        (changed("{transform: outline}", "{replace: g(), with: {a: 1}}"), "own.yaml:6:25: `with` needs a `transform`"),
        (
            changed("outline", "predicate, with: {a: 1}"),
            "own.yaml:6:33: the transform `predicate` takes nothing in `with`",
        ),
        (
            changed("outline", "outline, with: {observe: true}"),
            "own.yaml:6:38: unknown key `observe` (did you mean `observes`?)",
        ),
        (changed("transform: outline", "with: {loud: 1}, transform: outline"), "own.yaml:6:18: unknown key `loud`"),
        (
            changed("outline", "outline, with: {observes: 1}"),
            "own.yaml:6:48: `observes` must be true or false, not `1`",
        ),
        (changed("outline", "outline, with: {}"), "own.yaml:6:37: `with` lacks the key `observes`"),
        (changed("function: f", "function: f, function_gb: [GB0001]"), "`GB0001` is not in the `gb` of the rule"),
        (changed("function: f", "function: f, method_gb: [GB0001]"), "own.yaml:5:44: `method_gb` needs a `method`"),
        (
            RULE + "    message: 'a {x}'\n",
            "own.yaml:7:14: unknown placeholder `{x}` (known here: {callee}, {function})",
        ),
        (RULE + "    message: 'a {'\n", "own.yaml:7:14: bad placeholder"),
        (RULE + "    gb: [GB17]\n", "own.yaml:7:10: `gb`: `GB17` is not an id like `GB0170`"),
        (RULE + "    torch: '2.4'\n", "`torch`: `2.4` is not version bounds like"),
        (RULE + "    severity: loud\n", "`severity`: unknown value `loud` (one of impact, error, warning, note)"),
        (RULE + "    examples: [{fixed: f}]\n", "the example needs `bad` or `ok`"),
        (RULE + "    examples: [{ok: f, fixed: f}]\n", "`fixed` needs a `bad`"),
        (RULE + RULE.partition("\n")[2], "own.yaml:7: the code `A1` is already taken by the rule at own.yaml:2"),
        (RULE + RULE.partition("\n")[2].replace("A1", "A2"), "the name `a` is already taken"),
        ("rules:\n\t- a\n", "own.yaml:2:1: broken YAML"),
        ("rules: [\n", "own.yaml:2:1: broken YAML"),
        ("rules: 'a\n", "broken YAML"),
        ("rules: \x00\n", "broken YAML"),
        ("a: 1\n---\nb: 1\n", "broken YAML"),
        ("rules: *x\n", "broken YAML"),
        ("rules: &x [*x]\n", "own.yaml:1:8: anchors and aliases are not supported"),
        ("rules: !!python/object/apply:os.system ['true']\n", "own.yaml:1:8: the tag `python/object/apply:os.system`"),
        (changed("summary: s", "summary: !!binary YQ=="), "own.yaml:4:14: the tag `binary` is not allowed"),
        (changed("{transform: outline}", "{transform: outline, with: {a: !!int b}}"), "own.yaml:6:"),
        ("? [a]\n: 1\n", "own.yaml:1:3: a key must be a string"),
        ("[" * 5000, "broken YAML"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PackError) as caught:
        parse_pack(text, "own.yaml")
    assert message in str(caught.value)


def test_a_pack_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"gone\.yaml: cannot read the rule pack: No such file"):
        load_pack(tmp_path / "gone.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"rules: \xff\n")
    with pytest.raises(PackError, match=r"bad\.yaml: the rule pack is not UTF-8"):
        load_pack(tmp_path / "bad.yaml")


def test_an_own_pack_joins_the_built_in_rules(tmp_path: Path) -> None:
    pack = tmp_path / "own.yaml"
    pack.write_text(FULL, encoding="utf-8")
    codes = [rule.code for rule in load_rules((str(pack), str(pack)))]
    assert codes[-3:] == ["ACME7", "ACME8", "ACME9"]
    assert "GM101" in codes


def test_an_own_pack_may_not_take_a_built_in_code(tmp_path: Path) -> None:
    pack = tmp_path / "own.yaml"
    pack.write_text(FULL.replace("ACME9", "GM101"), encoding="utf-8")
    with pytest.raises(
        PackError, match=r"own\.yaml:39: the code `GM101` is already taken by the rule at .*control_flow"
    ):
        load_rules((str(pack),))


class TestSchema:
    def test_the_published_schema_is_up_to_date(self) -> None:
        assert json_schema() == SCHEMA, "run: python -m graphmend.rules.schema > rules/schema.json"

    def test_it_is_a_schema(self) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    @pytest.mark.parametrize("path", builtin_paths(), ids=lambda path: path.stem)
    def test_it_accepts_the_built_in_packs(self, path: Path) -> None:
        jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), SCHEMA)

    def test_it_accepts_what_the_loader_accepts(self) -> None:
        jsonschema.validate(yaml.safe_load(FULL), SCHEMA)

    @pytest.mark.parametrize(
        "text",
        [
            "rules: []\n",
            "rule: []\n",
            "[1]\n",
            changed("summary", "sumary"),
            changed("summary: s", "summary: 1"),
            changed("code: A1", "code: a1"),
            changed("outline", "outlin"),
            changed("{transform: outline}", "{}"),
            changed("    fix: {transform: outline}\n", ""),
            RULE + "    refusal: {obligation: identity, reason: r}\n",
            changed("{call: {function: f}}", "{}"),
            changed("function: f", "function: 'f('"),
            RULE + "    gb: [GB17]\n",
            RULE + "    torch: '2.4'\n",
            RULE + "    examples: [{fixed: f}]\n",
            changed("{transform: outline}", "{replace: g(), with: {observes: true}}"),
            changed("outline", "predicate, with: {observes: true}"),
            changed("outline", "outline, with: {observe: true}"),
            changed("outline", "outline, with: {observes: 1}"),
            changed("outline", "outline, with: {}"),
        ],
    )
    def test_it_refuses_what_the_loader_refuses(self, text: str) -> None:
        with pytest.raises(PackError):
            parse_pack(text, "own.yaml")
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(text), SCHEMA)


class TestBuiltInPacks:
    def test_every_family_is_there(self) -> None:
        codes = {rule.code for rule in load_rules()}
        assert codes >= {"GM101", "GM102", "GM103", "GM104", "GM201", "GM301", "GM302", "GM303"}

    def test_a_rule_of_a_file_belongs_to_its_family(self) -> None:
        for path in builtin_paths():
            assert len({rule.code[:3] for rule in load_pack(path).rules}) == 1

    @pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.code)
    def test_every_rule_is_explained_and_shown(self, rule: object) -> None:
        from graphmend.rules.model import Rule

        assert isinstance(rule, Rule)
        last = "## What the fix preserves" if rule.fix is not None else "## What to do instead"
        for heading in ("## What it does", "## Why is this bad", last):
            assert heading in rule.explanation
        assert any(example.bad for example in rule.examples)
        assert any(example.ok for example in rule.examples)
        assert rule.gb
        assert rule.torch

    def test_every_graph_break_is_in_the_registry_of_torch(self) -> None:
        torch = pytest.importorskip("torch")
        path = Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json"
        registry = json.loads(path.read_text("utf-8"))
        assert {gb for rule in load_rules() for gb in rule.gb} <= set(registry)


class TestSelection:
    def chosen(self, **settings: object) -> list[str]:
        from dataclasses import replace

        from graphmend.config import default_config
        from graphmend.rules.select import select_rules

        config = replace(default_config("/"), **settings)  # type: ignore[arg-type]
        return sorted(rule.code for rule in select_rules(load_rules(), config))

    def test_all_rules_are_on_by_default(self) -> None:
        assert self.chosen() == sorted(rule.code for rule in load_rules())

    def test_beginnings_of_codes_choose(self) -> None:
        assert self.chosen(select=("GM8",)) == ["GM801", "GM802"]
        assert "GM301" not in self.chosen(ignore=("GM3",))
        assert self.chosen(select=("GM8",), extend_select=("GM301",)) == ["GM301", "GM801", "GM802"]
        others = tuple(f"GM{family}" for family in range(1, 8))
        assert self.chosen(select=("ALL",), ignore=others, extend_ignore=("GM802",)) == ["GM801"]

    def test_the_longer_beginning_decides(self) -> None:
        assert self.chosen(select=("GM301", "GM8"), ignore=("GM3",)) == ["GM301", "GM801", "GM802"]
        assert self.chosen(select=("GM8",), ignore=("GM801",)) == ["GM802"]
        assert self.chosen(select=("GM8",), ignore=("GM8",)) == []
        assert self.chosen(ignore=("ALL",)) == []

    @pytest.mark.parametrize("key", ["select", "extend_select", "ignore", "extend_ignore"])
    def test_an_unknown_code_is_told(self, key: str) -> None:
        with pytest.raises(
            ConfigError, match=rf"{key.replace('_', '-')}: unknown rule code `GM333` \(did you mean `GM3"
        ):
            self.chosen(**{key: ("GM333",)})

    def test_rules_that_do_not_hold_for_a_torch_are_left_out(self) -> None:
        assert self.chosen(torch="1.13") == []
        assert self.chosen(torch="2.13") == self.chosen()

    @pytest.mark.parametrize(
        ("bounds", "version", "holds"),
        [
            (">=2.0", "2.0", True),
            (">=2.0", "2.13.1", True),
            (">=2.0", "1.13", False),
            (">=2.4,<2.6", "2.5.1", True),
            (">=2.4,<2.6", "2.6", False),
            (">2.4", "2.4.0", False),
            (">2.4", "2.4.1", True),
            ("<=2.4", "2.4.0", True),
            ("==2.4", "2.4.1", True),
            ("!=2.4", "2.4.1", False),
            ("!=2.4", "2.5", True),
            ("", "2.5", True),
        ],
    )
    def test_bounds_of_versions(self, bounds: str, version: str, holds: bool) -> None:
        from graphmend.rules.select import breaks_in

        assert breaks_in(bounds, version) is holds
        assert breaks_in(bounds, None)
