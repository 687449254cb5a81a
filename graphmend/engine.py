"""The pipeline: files in, a report out; with fixes, text in and text out until nothing more can be mended."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from graphmend.analysis import Analysis, Lead
from graphmend.config import Config
from graphmend.discover import discover, display_path
from graphmend.files import write_atomically
from graphmend.findings import Applicability, Behind, Edit, FileError, Finding, Fix, FixedFile, Impact, Report
from graphmend.fixes import verify_edits
from graphmend.fixes.identifiers import names_of
from graphmend.fixes.site import RuntimeImport
from graphmend.model.index import Index
from graphmend.model.module import Module
from graphmend.regions.heirs import base_words
from graphmend.rules.loader import load_rules
from graphmend.rules.model import Rule
from graphmend.rules.select import ignored_codes, select_rules
from graphmend.source.edits import apply_edits, choose_fixes
from graphmend.source.shift import Shift
from graphmend.source.text import DecodeError, SourceText
from graphmend.suppress import find_suppressions
from graphmend.vendoring import Vendored, runtime_for

_PASSES = 10
"""How often mended files are looked at again; more would mean that two fixes undo each other."""
_HEAD = 2000
"""How many characters at the top of a file may say that a program wrote it."""
_STACK = 512 * 1024 * 1024
_RECURSION = 50_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """What a run is asked to do.

    Args:
        paths: files and folders as given.
        config: the settings.
        fix: whether fixes are applied.
        unsafe: whether unsafe fixes are applied too.
        write: whether mended files are written; otherwise only the report holds their text.
        stdin: the name and the text of standard input, linted in place of ``paths``.
    """

    paths: tuple[str, ...]
    config: Config
    fix: bool = False
    unsafe: bool = False
    write: bool = False
    stdin: tuple[str, str] | None = None


def run(request: Request) -> Report:
    """Lint, and if asked mend, the files of a request.

    Problems with single files are part of the report.

    Raises:
        UserError: the configuration or a rule pack cannot be used.
    """
    started = time.perf_counter()
    rules = load_rules(request.config.packs)
    session = _Session(request, select_rules(rules, request.config), rules)
    report = _with_deep_stack(session.run)
    return replace(report, seconds=time.perf_counter() - started)


def _with_deep_stack(work: Callable[[], T]) -> T:
    """Run ``work`` where calls may nest as deep as the call graph of a large model, without the collector's pauses."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the calling thread
            failure.append(error)

    limit, stack, collecting = sys.getrecursionlimit(), threading.stack_size(_STACK), gc.isenabled()
    sys.setrecursionlimit(_RECURSION)
    gc.disable()  # syntax trees and values hold no cycles worth finding; the collector would walk them again and again
    try:
        thread = threading.Thread(target=body, name="graphmend")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(stack)
        if collecting:
            gc.enable()
    if failure:
        raise failure[0]
    return outcome[0]


@dataclass
class _File:
    """One linted file in the course of a run."""

    path: str
    original: SourceText
    source: SourceText
    named: bool
    generated: bool = False
    count: int = 0
    limits: list[str] = field(default_factory=list)
    leads: list[Lead] = field(default_factory=list)


class _Session:
    def __init__(self, request: Request, rules: Sequence[Rule], known: Sequence[Rule]) -> None:
        self.request = request
        self.config = request.config
        self.rules = rules
        self.observers = [rule for rule in known if rule.fix is not None and rule.fix.transform == "outline"]
        self.files: dict[str, _File] = {}
        self.others: dict[str, _File] = {}
        """Files without the word ``torch``, in which nothing can be found unless a region leads into them."""
        self.bases: dict[str, frozenset[str]] = {}
        """The words among which the base classes in them are."""
        self.errors: list[FileError] = []
        self.parsed: dict[str, Module] = {}
        self.outdated: list[Module] = []
        self.vendored: dict[str, Vendored] = {}

    def run(self) -> Report:
        count = self.read()
        self.analyse(self.entry_files(), self.files)
        if self.request.fix:
            self.mend()
        fixed = [
            FixedFile(file.path, file.original.text, file.source.text, file.count, tuple(file.limits))
            for file in self.files.values()
            if file.source is not file.original
        ]
        runtimes = tuple(vendored.copy() for vendored in self.vendored.values())
        if self.request.write:
            fixed = self.write(fixed)
        findings = [finding for file in self.files.values() for finding in self.folded(file)]
        findings.sort(key=lambda finding: finding.sort_key)
        errors = sorted(dict.fromkeys(self.errors), key=lambda error: (error.path, error.line or 0))
        paths = tuple(sorted(file.path for files in (self.files, self.others) for file in files.values()))
        return Report(tuple(findings), tuple(errors), tuple(fixed), runtimes, count, paths)

    # ---------------------------------------------------------------- reading

    def read(self) -> int:
        """Read and decode what is to be linted; returns how many files there are."""
        if self.request.stdin is not None:
            name, text = self.request.stdin
            path = display_path(name)
            self.add(path, SourceText(path, text), named=True)
            return 1
        found = discover(self.request.paths, self.config)
        self.errors += found.errors
        for each in found.files:
            try:
                with open(each.path, "rb") as stream:
                    data = stream.read()
                self.add(each.path, SourceText.decode(each.path, data), each.named)
            except OSError as error:
                self.errors.append(FileError(each.path, f"cannot be read: {error.strerror or error}"))
            except DecodeError as error:
                self.errors.append(FileError(each.path, f"cannot be decoded: {error}"))
        return len(found.files)

    def add(self, path: str, source: SourceText, named: bool) -> None:
        """Take a file into the run, unless it is no Python."""
        head = source.text[:_HEAD].lower()
        generated = any(marker.lower() in head for marker in self.config.generated_markers)
        file = _File(path, source, source, named, generated)
        known = os.path.abspath(path)
        if "torch" in source.text or any(rule.region.value == "anywhere" for rule in self.rules):
            self.files[known] = file
        else:
            self.check_syntax(source)
            self.others[known] = file
            self.bases[known] = base_words(source.text)

    def check_syntax(self, source: SourceText) -> None:
        """A file without torch or regions is not analysed, but one that is no Python is still told of."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(source.text, source.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.errors.append(_unreadable(source, error))

    def entry_files(self) -> list[str]:
        """The files in which a region may start."""
        words = ("forward", "compile", "_dynamo.optimize")
        return [path for path, file in self.files.items() if any(word in file.source.text for word in words)]

    # ---------------------------------------------------------------- analysis

    def analyse(self, entries: Iterable[str], report: Iterable[str]) -> None:
        """Follow the regions of ``entries`` and refresh the leads of the files in ``report``.

        What they lead into becomes one of the files.
        """
        overlay = {path: file.source for files in (self.files, self.others) for path, file in files.items()}
        index = Index(overlay, self.parsed, display_path)
        analysis = Analysis(index, self.config, self.rules, self.observers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser's remarks on escapes in code that is only read
            self.errors += analysis.enter(entries, self.bases)
            self.files |= {path: self.others.pop(path) for path in list(self.others) if analysis.concerns(path)}
            for path in report:
                file = self.files[path]
                file.leads = []
                error = index.errors.get(path)
                if error is not None:
                    self.errors.append(_unreadable(file.source, error))
                elif analysis.concerns(path):
                    for each in analysis.leads(path, self.runtime(path)):
                        if isinstance(each, FileError):
                            self.errors.append(each)
                        else:
                            file.leads.append(each)
                    file.leads = self.finish(file)
                elif not index.is_loaded(path):
                    self.check_syntax(file.source)
        self.parsed = index.modules()
        self.program = analysis.program

    def runtime(self, path: str) -> RuntimeImport:
        """How mended code in a file gets at the runtime."""
        return runtime_for(path, self.config.runtime)

    def finish(self, file: _File) -> list[Lead]:
        """A file's leads with suppressions applied and silenced codes dropped."""
        silenced = ignored_codes(os.path.abspath(file.path).replace(os.sep, "/"), self.config)
        comments = find_suppressions(file.source.text) if file.leads else None
        done: list[Lead] = []
        for lead in file.leads:
            finding = lead.finding
            if silenced and finding.rule.startswith(silenced):
                continue
            if comments is not None and comments.silences(finding.rule, finding.range.line, finding.range.end_line):
                finding = replace(finding, suppressed=True)
            if file.generated:
                origin = _origin(file.source, self.config)
                finding = replace(finding, note=origin, withheld=not self.may_mend(file))
            done.append(replace(lead, finding=finding))
        return done

    def folded(self, file: _File) -> list[Finding]:
        """A file's findings, where what tracing does not get to is part of what keeps it from that.

        What has a fix or is not shown stays by itself.
        """
        findings: list[Finding] = []
        holders: dict[int, int] = {}
        for lead in _outer_first(file.leads):
            finding = lead.finding
            shown = not finding.suppressed and finding.confidence.rank <= self.config.min_confidence.rank
            holder = holders.get(lead.number) if shown and finding.fix is None else None
            if holder is not None:
                part = Behind(finding.path, finding.range, finding.rule, finding.message, finding.refusal)
                findings[holder] = replace(findings[holder], behind=(*findings[holder].behind, part))
            else:
                findings.append(finding)
                if shown and finding.fix is None and finding.impact is Impact.SKIPS_FRAME:
                    for number in lead.behind:
                        holders.setdefault(number, len(findings) - 1)
        return findings

    # ---------------------------------------------------------------- fixing

    def mend(self) -> None:
        """Apply fixes until nothing more can be mended."""
        pending = [path for path, file in self.files.items() if file.leads and self.may_mend(file)]
        for _ in range(_PASSES):
            again = [path for path in pending if self.mend_file(self.files[path])]
            if not again:
                return
            entries = set(again) | self.caller_files(again)
            self.program.close()
            while self.outdated:
                self.outdated.pop().close()
            self.analyse(sorted(entries), again)
            pending = again

    def caller_files(self, paths: Iterable[str]) -> set[str]:
        """The linted files from which calls reach the functions of these files."""
        callers = (caller for path in paths for caller in self.program.caller_modules(path))
        return {caller for caller in callers if caller in self.files}

    def may_mend(self, file: _File) -> bool:
        """Whether fixes of a file are applied: what a program wrote is only mended when named or asked for."""
        return not file.generated or file.named or self.config.fix_generated

    def applies(self, finding: Finding) -> bool:
        """Whether a finding's fix is applied in this run."""
        return (
            finding.fix is not None
            and not finding.suppressed
            and finding.confidence.rank <= self.config.min_confidence.rank
            and (self.request.unsafe or finding.fix.applicability is Applicability.SAFE)
        )

    def mend_file(self, file: _File) -> bool:
        """Apply one pass of fixes; returns whether what is left has to be looked at again."""
        wanted = [lead for lead in _outer_first(file.leads) if self.applies(lead.finding)]
        fixes = [lead.finding.fix for lead in wanted if lead.finding.fix is not None]
        chosen = self.sound(file, choose_fixes(fixes))
        if not chosen:
            return False
        module = self.parsed[os.path.abspath(file.path)]
        edits = list(dict.fromkeys(edit for fix in names_of(module).settle(chosen) for edit in fix.edits))
        before = file.source
        after = replace(before, text=apply_edits(before.text, edits))
        file.source = after
        file.count += sum(not fix.is_step for fix in chosen)
        file.limits += [fix.limits for fix in chosen if fix.limits]
        mended = [lead for lead in wanted if lead.finding.fix in chosen]
        file.leads = [lead for lead in file.leads if lead.finding.fix not in chosen]
        known = os.path.abspath(file.path)
        if known in self.parsed:
            self.outdated.append(self.parsed.pop(known))
        for fix in chosen:
            self.vendor(file, fix)
        shift = Shift(before, after, edits)
        again = any(_touched(lead, edits) for lead in file.leads) or any(_remains(lead) for lead in mended)
        for other in self.files.values():
            if other is not file:
                other.leads = [replace(lead, finding=shift.finding(lead.finding)) for lead in other.leads]
        if not again:
            file.leads = [
                replace(
                    lead,
                    finding=shift.finding(lead.finding),
                    start=shift.offset(lead.start),
                    end=shift.offset(lead.end),
                )
                for lead in file.leads
            ]
        return again

    def sound(self, file: _File, fixes: list[Fix]) -> list[Fix]:
        """The fixes after which the file still parses and its other code is unchanged."""
        if not fixes:
            return fixes
        module = self.parsed.get(os.path.abspath(file.path))
        tree = module.tree if module is not None else None
        problem = verify_edits(file.source, [edit for fix in fixes for edit in fix.edits], tree)
        if problem is None:
            return fixes
        kept: list[Fix] = []
        for fix in fixes:
            problem = verify_edits(file.source, [edit for each in (*kept, fix) for edit in each.edits], tree)
            if problem is None:
                kept.append(fix)
            else:
                line = fix.edits[0].range.line
                self.errors.append(FileError(file.path, f"a fix ({fix.transform}) was dropped: {problem}", line))
        return kept

    def vendor(self, file: _File, fix: Fix) -> None:
        """Remember that a mended file needs the runtime beside it."""
        if self.config.runtime is not None:
            vendored = Vendored.beside(file.path, self.config.runtime)
            self.vendored[vendored.path] = vendored

    # ---------------------------------------------------------------- writing

    def write(self, fixed: list[FixedFile]) -> list[FixedFile]:
        """Write the mended files; returns those that could be written."""
        written: list[FixedFile] = []
        for vendored in self.vendored.values():
            try:
                vendored.write()
            except OSError as error:
                self.errors.append(
                    FileError(display_path(vendored.path), f"cannot be written: {error.strerror or error}")
                )
                return []
        for each in fixed:
            file = self.files[os.path.abspath(each.path)]
            try:
                write_atomically(each.path, file.source.encode(each.after))
                written.append(each)
            except (OSError, UnicodeEncodeError) as error:
                self.errors.append(FileError(each.path, f"cannot be written: {error}"))
        return written


def _touched(lead: Lead, edits: Sequence[Edit]) -> bool:
    """Whether edits changed the statement of a lead, or something that its own fix would change as well."""
    planned = lead.finding.fix.edits if lead.finding.fix is not None else ()
    return any(edit in planned or (edit.start < lead.end and lead.start < edit.end) for edit in edits)


def _remains(lead: Lead) -> bool:
    """Whether a fix left something of its statement, in which a rule may find more: a statement is one finding."""
    edits = lead.finding.fix.edits if lead.finding.fix is not None else ()
    return not any(edit.start <= lead.start and lead.end <= edit.end for edit in edits)


def _outer_first(leads: Iterable[Lead]) -> list[Lead]:
    """Leads in the order of the source, a statement before those inside it."""
    return sorted(leads, key=lambda lead: (lead.finding.range.line, lead.finding.range.column))


def _unreadable(source: SourceText, error: Exception) -> FileError:
    if isinstance(error, SyntaxError):
        return FileError(source.path, f"syntax error: {error.msg}", error.lineno, error.offset)
    return FileError(source.path, f"cannot be parsed: {type(error).__name__}: {error}")


def _origin(source: SourceText, config: Config) -> str:
    """What the top of a generated file says of where it comes from."""
    for number in range(1, min(len(source.line_starts), 30) + 1):
        line = source.line(number)
        if any(marker.lower() in line.lower() for marker in config.generated_markers):
            return f"this file is generated: {line.strip().strip('#').strip()}"
    return "this file is generated"
