"""JSON for programs. Keys are added over time and never renamed."""

from __future__ import annotations

import json
from typing import Any

from graphmend.findings import Behind, BreakSite, Edit, FileError, Finding, Fix, Refusal, Report
from graphmend.report import Options
from graphmend.version import __version__


def render(report: Report, options: Options) -> str:
    """Returns one JSON object with the findings, also the silenced ones, and the errors."""
    document = {
        "version": 1,
        "tool": tool(),
        "findings": [finding_of(finding) for finding in report.findings],
        "unexplained": [site_of(site) for site in report.unexplained],
        "errors": [error_of(error) for error in report.errors],
        "fixed": [{"path": file.path, "count": file.count, "limits": list(file.limits)} for file in report.fixed],
        "files": report.files,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def tool() -> dict[str, str]:
    """Returns what made the document."""
    return {"name": "graphmend", "version": __version__}


def error_of(error: FileError) -> dict[str, Any]:
    """Returns an error as JSON has it."""
    return {
        "path": error.path,
        "line": error.line,
        "column": error.column,
        "message": error.message,
        "hint": error.hint,
    }


def site_of(site: BreakSite) -> dict[str, Any]:
    """Returns a place where a run broke the graph as JSON has it."""
    inside = site.inside
    return {
        "path": site.path,
        "line": site.line,
        "end_line": site.end_line,
        "function": site.function,
        "gb": list(site.gb),
        "reason": site.reason,
        "explanation": site.explanation,
        "skips_frame": site.skips_frame,
        "inside": inside and {"path": inside.path, "line": inside.line, "function": inside.function},
        "lines": list(site.named),
        "count": site.count,
    }


def finding_of(finding: Finding) -> dict[str, Any]:
    """Returns a finding as JSON has it."""
    return {
        "rule": finding.rule,
        "name": finding.name,
        "path": finding.path,
        "line": finding.range.line,
        "column": finding.range.column,
        "end_line": finding.range.end_line,
        "end_column": finding.range.end_column,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "impact": finding.impact.value,
        "message": finding.message,
        "region": [
            {"path": frame.path, "line": frame.line, "function": frame.function, "launch": frame.is_launch}
            for frame in finding.region
        ],
        "gb": list(finding.gb),
        "fix": _fix(finding.fix),
        "refusal": _refusal(finding.refusal),
        "behind": [_behind(part) for part in finding.behind],
        "suppressed": finding.suppressed,
        "note": finding.note,
        "trace": finding.seen and finding.seen.value,
    }


def _behind(part: Behind) -> dict[str, Any]:
    return {
        "rule": part.rule,
        "path": part.path,
        "line": part.range.line,
        "column": part.range.column,
        "end_line": part.range.end_line,
        "end_column": part.range.end_column,
        "message": part.message,
        "refusal": _refusal(part.refusal),
    }


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {
        "transform": fix.transform,
        "applicability": fix.applicability.value,
        "changes": fix.changes,
        "limits": fix.limits,
        "proof": [{"obligation": item.obligation, "how": item.how, "detail": item.detail} for item in fix.proof],
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "path": edit.path,
        "line": edit.range.line,
        "column": edit.range.column,
        "end_line": edit.range.end_line,
        "end_column": edit.range.end_column,
        "start": edit.start,
        "end": edit.end,
        "replacement": edit.replacement,
    }


def _refusal(refusal: Refusal | None) -> dict[str, Any] | None:
    if refusal is None:
        return None
    return {
        "transform": refusal.transform,
        "obligation": refusal.obligation,
        "reason": refusal.reason,
        "line": refusal.line,
    }
