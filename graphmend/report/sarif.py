"""SARIF 2.1.0, as code scanning services read it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attr
import sarif_om as om

from graphmend.findings import BreakSite, Edit, FileError, Finding, Fix, Frame, Range, Report, Severity
from graphmend.report import Options
from graphmend.report.repository import Repository
from graphmend.rules.model import Rule
from graphmend.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BREAK_SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{}.html"
_PROBLEM_SEVERITY = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}


def render(report: Report, options: Options) -> str:
    """Returns a SARIF log with one run."""
    log = om.SarifLog(schema_uri=_SCHEMA, version="2.1.0", runs=[_Run(report, options.rules).build()])
    return json.dumps(serialise(log), indent=2, ensure_ascii=False) + "\n"


def serialise(value: Any) -> Any:
    """Turns objects of the model into plain values with the names of the schema; what is not set is left out."""
    if isinstance(value, (list, tuple)):
        return [serialise(item) for item in value]
    if isinstance(value, dict):
        return {key: serialise(item) for key, item in value.items()}
    if not attr.has(type(value)):
        return value
    result = {}
    for field in attr.fields(type(value)):
        item = getattr(value, field.name)
        if item is not None and item != -1:  # -1 is the model's mark for an index that is not set
            result[field.metadata["schema_property_name"]] = serialise(item)
    return result


class _Run:
    def __init__(self, report: Report, rules: Sequence[Rule]) -> None:
        self.report = report
        self.rules = rules
        self.indices = {rule.code: index for index, rule in enumerate(rules)}
        self.repository = Repository()

    def build(self) -> Any:
        driver = om.ToolComponent(
            name="graphmend",
            version=__version__,
            semantic_version=__version__,
            rules=[_descriptor(rule) for rule in self.rules],
        )
        invocation = om.Invocation(
            execution_successful=not self.report.errors,
            tool_execution_notifications=[
                *(self.notification(error) for error in self.report.errors),
                *(self.unexplained(site) for site in self.report.unexplained),
            ],
        )
        fingerprints = _fingerprints(self.report.findings)
        return om.Run(
            tool=om.Tool(driver=driver),
            automation_details=om.RunAutomationDetails(id="graphmend/"),
            column_kind="unicodeCodePoints",
            invocations=[invocation],
            results=[self.result(*pair) for pair in zip(self.report.findings, fingerprints, strict=True)],
        )

    def result(self, finding: Finding, fingerprint: str) -> Any:
        return om.Result(
            rule_id=finding.rule,
            rule_index=self.indices.get(finding.rule, -1),
            level=finding.severity.value,
            message=om.Message(text=_message(finding)),
            locations=[self.location(finding.path, finding.range)],
            related_locations=[
                self.location(part.path, part.range, f"behind: {part.rule} {part.message}") for part in finding.behind
            ]
            or None,
            code_flows=[self.code_flow(finding)] if finding.region else None,
            partial_fingerprints={"graphmendFingerprint/v1": fingerprint},
            fixes=[self.fix(finding.fix)] if finding.fix else None,
            suppressions=[om.Suppression(kind="inSource")] if finding.suppressed else None,
            properties=_properties(finding),
        )

    def location(self, path: str, where: Range | None, message: str | None = None) -> Any:
        return om.Location(
            physical_location=om.PhysicalLocation(
                artifact_location=self.artifact(path), region=_region(where) if where else None
            ),
            message=om.Message(text=message) if message else None,
        )

    def artifact(self, path: str) -> Any:
        uri, inside = self.repository.uri(path)
        return om.ArtifactLocation(uri=uri, uri_base_id="%SRCROOT%" if inside else None)

    def code_flow(self, finding: Finding) -> Any:
        """The call chain as a path that ends at the finding; its last frame is the finding's own line."""
        *callers, here = finding.region
        steps = [self.frame(frame) for frame in callers]
        if (here.path, here.line) != (finding.path, finding.range.line):
            steps.append(self.frame(here))
        steps.append(self.location(finding.path, finding.range, f"{here.function}: {finding.message}"))
        steps = [om.ThreadFlowLocation(location=step, nesting_level=depth) for depth, step in enumerate(steps)]
        return om.CodeFlow(thread_flows=[om.ThreadFlow(locations=steps)])

    def frame(self, frame: Frame) -> Any:
        location = self.location(frame.path, None, frame.function)
        location.physical_location.region = om.Region(start_line=frame.line)
        location.logical_locations = [om.LogicalLocation(fully_qualified_name=frame.function, kind="function")]
        return location

    def fix(self, fix: Fix) -> Any:
        by_path: dict[str, list[Edit]] = {}
        for edit in fix.edits:
            by_path.setdefault(edit.path, []).append(edit)
        changes = [
            om.ArtifactChange(
                artifact_location=self.artifact(path), replacements=[_replacement(edit) for edit in edits]
            )
            for path, edits in by_path.items()
        ]
        kind = fix.applicability.value
        return om.Fix(description=om.Message(text=f"{fix.transform} ({kind})"), artifact_changes=changes)

    def notification(self, error: FileError) -> Any:
        where = None if error.line is None else om.Region(start_line=error.line, start_column=error.column)
        location = om.PhysicalLocation(artifact_location=self.artifact(error.path), region=where)
        return om.Notification(
            level="error",
            message=om.Message(text=error.message),
            locations=[om.Location(physical_location=location)],
        )

    def unexplained(self, site: BreakSite) -> Any:
        """A break of a watched run that is no result, since no rule is its reason."""
        where = om.Region(start_line=site.line, end_line=site.end_line)
        location = om.PhysicalLocation(artifact_location=self.artifact(site.path), region=where)
        ids = ", ".join(site.gb)
        told = f"{site.reason} ({ids})" if site.reason and ids else site.reason or ids or "no reason told"
        return om.Notification(
            level="note",
            message=om.Message(text=f"the graph broke here, and no rule explains it: {told}"),
            locations=[om.Location(physical_location=location)],
            properties={"trace": "unexplained", "gb": list(site.gb), "count": site.count},
        )


def _descriptor(rule: Rule) -> Any:
    level = rule.severity or Severity.WARNING
    text = rule.explanation or rule.summary
    return om.ReportingDescriptor(
        id=rule.code,
        name=rule.name,
        short_description=om.MultiformatMessageString(text=rule.summary),
        full_description=om.MultiformatMessageString(text=_first_paragraph(text)),
        help=om.MultiformatMessageString(text=text, markdown=text),
        help_uri=_BREAK_SITE.format(rule.gb[0][2:]) if rule.gb else None,
        default_configuration=om.ReportingConfiguration(level=level.value),
        properties={
            "tags": ["performance", "torch.compile", *rule.gb],
            "precision": "high",
            "problem.severity": _PROBLEM_SEVERITY[level],
        },
    )


def _first_paragraph(text: str) -> str:
    paragraphs = (part.strip() for part in text.split("\n\n"))
    return next((" ".join(part.split()) for part in paragraphs if part and not part.startswith("#")), text)


def _message(finding: Finding) -> str:
    if finding.refusal is None:
        return finding.message
    refusal = finding.refusal
    return f"{finding.message}. Not fixed: {refusal.reason} ({refusal.transform}: {refusal.obligation})"


def _properties(finding: Finding) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "confidence": finding.confidence.value,
        "impact": finding.impact.value,
        "gb": list(finding.gb),
    }
    if finding.seen:
        properties["trace"] = finding.seen.value
    if finding.note:
        properties["note"] = finding.note
    if finding.fix:
        properties["proof"] = [f"{item.obligation}: {item.how}: {item.detail}" for item in finding.fix.proof]
    return properties


def _region(where: Range) -> Any:
    return om.Region(
        start_line=where.line,
        start_column=where.column,
        end_line=where.end_line,
        end_column=where.end_column,
    )


def _replacement(edit: Edit) -> Any:
    return om.Replacement(
        deleted_region=_region(edit.range), inserted_content=om.ArtifactContent(text=edit.replacement)
    )


def _fingerprints(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields what identifies each finding when lines move: rule, text, and which of several equal ones it is."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in findings:
        text = " ".join(finding.source_line.split())
        key = (finding.path, finding.rule, text)
        seen[key] += 1
        yield hashlib.sha256(f"{finding.rule}\0{text}\0{seen[key]}".encode()).hexdigest()[:32]
