"""``graphmend rule CODE``: explains one rule."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.cli.output import write
from graphmend.cli.settings import add_packs, read_packs
from graphmend.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from graphmend.rules.model import Rule


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser("rule", help="explain a rule", description="Explains a rule.", allow_abbrev=False)
    parser.add_argument("code", metavar="CODE", help="the code or the name of a rule")
    add_packs(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command and returns its exit code.

    Raises:
        UserError: there is no such rule, or a rule pack cannot be used.
    """
    from graphmend.rules.loader import load_rules

    rules = load_rules(read_packs(options))
    wanted: str = options.code
    for rule in rules:
        if wanted.upper() == rule.code or wanted == rule.name:
            write("\n".join(explain(rule)) + "\n")
            return 0
    hint = did_you_mean(wanted.upper(), [rule.code for rule in rules])
    raise UserError(f"unknown rule `{wanted}`", hint=hint or "`graphmend rules list` shows them all")


def explain(rule: Rule) -> Iterator[str]:
    """Yields the lines of a rule's explanation, as Markdown."""
    from graphmend.obligations import DESCRIPTIONS

    yield f"# {rule.code}: {rule.name}"
    yield ""
    yield f"{rule.summary}."
    yield ""
    yield f"- severity: {rule.severity.value if rule.severity else 'follows the impact of each finding'}"
    if rule.gb:
        yield f"- Dynamo's graph breaks: {', '.join(rule.gb)}"
    if rule.torch:
        yield f"- torch: {rule.torch}"
    yield f"- fix: {_fix(rule)}"
    if rule.explanation:
        yield ""
        yield rule.explanation
    if rule.fix and rule.fix.requires:
        yield ""
        yield "## What must hold for the fix"
        yield ""
        for obligation in rule.fix.requires:
            yield f"- {obligation.value}: {DESCRIPTIONS[obligation]}"
    for example in rule.examples:
        for title, code in (("Reported", example.bad), ("Fixed", example.fixed), ("Not reported", example.ok)):
            if code is not None:
                yield from ("", f"## {title}", "", "```python", code.rstrip("\n"), "```")


def _fix(rule: Rule) -> str:
    if rule.fix:
        return rule.fix.transform or "a template of the rule's own, unsafe"
    return f"none: {rule.refusal.reason}" if rule.refusal else "none"
