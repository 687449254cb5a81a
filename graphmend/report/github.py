"""Workflow commands that GitHub shows as annotations of a pull request."""

from __future__ import annotations

from graphmend.findings import FileError, Finding, Report, Severity
from graphmend.report import Options, unsuppressed
from graphmend.report.repository import Repository

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, options: Options) -> str:
    """Returns a command for each finding and each error."""
    repository = Repository()
    lines = [_finding(finding, repository) for finding in unsuppressed(report.findings)]
    lines += [_error(error, repository) for error in report.errors]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, repository: Repository) -> str:
    where = finding.range
    properties: dict[str, str | int] = {
        "title": f"graphmend {finding.rule} {finding.name}",
        "file": repository.relative(finding.path) or finding.path,
        "line": where.line,
        "endLine": where.end_line,
    }
    if where.line == where.end_line:
        properties |= {"col": where.column, "endColumn": where.end_column}
    return _command(_COMMANDS[finding.severity], properties, finding.message)


def _error(error: FileError, repository: Repository) -> str:
    properties: dict[str, str | int] = {
        "title": "graphmend",
        "file": repository.relative(error.path) or error.path,
    }
    if error.line is not None:
        properties["line"] = error.line
    return _command("error", properties, error.message)


def _command(name: str, properties: dict[str, str | int], message: str) -> str:
    listed = ",".join(f"{key}={_escape(str(value), ':,')}" for key, value in properties.items())
    return f"::{name} {listed}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text
