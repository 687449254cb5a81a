"""``graphmend rules list|check|test``: shows rules, checks packs, and runs the examples of packs."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from graphmend.cli.output import complain, write
from graphmend.cli.settings import add_packs, read_packs
from graphmend.errors import PackError

if TYPE_CHECKING:
    from graphmend.rules.model import Rule


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser("rules", help="show rules, check and test packs", allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the rules", allow_abbrev=False)
    add_packs(listing)
    listing.add_argument("--output-format", choices=("text", "json", "markdown"), default="text")
    listing.set_defaults(run=run_list)
    check = actions.add_parser("check", help="check rule packs for mistakes", allow_abbrev=False)
    check.add_argument("packs", metavar="FILE", nargs="*", help="rule packs (default: the built-in ones)")
    check.set_defaults(run=run_check)
    test = actions.add_parser("test", help="run the examples of rules", allow_abbrev=False)
    test.add_argument("packs", metavar="FILE", nargs="*", help="rule packs (default: the built-in ones)")
    test.set_defaults(run=run_test)


def run_list(options: argparse.Namespace) -> int:
    """Lists the rules."""
    from graphmend.rules.loader import load_rules

    rules = sorted(load_rules(read_packs(options)), key=lambda rule: rule.code)
    render = {"text": _as_text, "json": _as_json, "markdown": _as_markdown}[options.output_format]
    write(render(rules))
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Checks packs, alone and together with the built-in ones; tells of every pack that cannot be used."""
    from graphmend.report import counted
    from graphmend.rules.loader import load_pack, load_rules

    failed = False
    count = 0
    for path in options.packs:
        try:
            count += len(load_pack(path).rules)
        except PackError as error:
            complain(str(error))
            failed = True
    if failed:
        return 2
    rules = load_rules(tuple(options.packs))  # also what only shows beside the built-in rules, like a code used twice
    write(f"{counted(count if options.packs else len(rules), 'rule')}, no mistakes\n")
    return 0


def run_test(options: argparse.Namespace) -> int:
    """Runs the examples of packs and tells of each that does not do what it says."""
    from graphmend.examples import check_examples
    from graphmend.report import counted
    from graphmend.rules.loader import load_pack, load_rules

    rules = load_rules(tuple(options.packs))
    if options.packs:
        rules = tuple(rule for path in options.packs for rule in load_pack(path).rules)
    failures = [failure for rule in rules for failure in check_examples(rule, tuple(options.packs))]
    for failure in failures:
        write(f"{failure}\n")
    count = sum(len(rule.examples) for rule in rules)
    write(f"{counted(count, 'example')}, {counted(len(failures), 'failure')}\n")
    return 1 if failures else 0


def _as_text(rules: list[Rule]) -> str:
    width = max(len(rule.name) for rule in rules)
    return "".join(f"{rule.code}  {rule.name:<{width}}  {rule.summary}\n" for rule in rules)


def _as_json(rules: list[Rule]) -> str:
    documents = [
        {
            "code": rule.code,
            "name": rule.name,
            "summary": rule.summary,
            "severity": rule.severity.value if rule.severity else "impact",
            "gb": list(rule.gb),
            "torch": rule.torch,
            "transform": rule.fix.transform if rule.fix else None,
            "requires": [obligation.value for obligation in rule.fix.requires] if rule.fix else [],
            "explanation": rule.explanation,
        }
        for rule in rules
    ]
    return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"


def _as_markdown(rules: list[Rule]) -> str:
    rows = [
        f"| {rule.code} | {rule.name} | {rule.summary} | {_transform(rule)} | {', '.join(rule.gb)} |" for rule in rules
    ]
    return "\n".join(["| code | name | what is reported | fix | Dynamo |", "|---|---|---|---|---|", *rows]) + "\n"


def _transform(rule: Rule) -> str:
    if rule.fix is None:
        return "none"
    return rule.fix.transform or "template"
